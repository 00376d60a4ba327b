"""The same random clouds and requests on this server and on an earlier release of it, answers compared to the byte."""
