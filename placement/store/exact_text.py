"""Compare text letter by letter, also on MariaDB, whose collations ignore case."""

from typing import Any

from sqlalchemy import String
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction


class exactly(GenericFunction[str]):  # noqa: N801 - as a function of SQL
    """A column that equals only what is spelled the same. On MariaDB no index finds it."""

    type = String()
    inherit_cache = True


@compiles(exactly)
def _itself(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(exactly, "mysql")
@compiles(exactly, "mariadb")
def _its_bytes(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return f"BINARY {compiler.process(element.clauses, **options)}"
