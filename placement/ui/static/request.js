// The request form: complete names after each comma, not only at the beginning of a field.
"use strict";

htmx.onLoad((content) => {
  for (const field of content.querySelectorAll("input[list]")) {
    const names = [...field.list.options].map((option) => option.value);
    const own = document.createElement("datalist");
    own.id = `${field.id}-names`;
    field.after(own);
    field.setAttribute("list", own.id);
    const complete = () => {
      const before = field.value.slice(0, field.value.search(/[^,!\s]*$/));
      own.replaceChildren(...names.map((name) => new Option("", before + name)));
    };
    field.addEventListener("focus", complete);
    field.addEventListener("input", complete);
  }

});

// A row of the table links to its drawing, which may be folded.
document.addEventListener("click", (event) => {
  const link = event.target.closest(".candidates a[href^='#']");
  const drawing = link && document.getElementById(link.hash.slice(1));
  if (drawing) drawing.open = true;
});
