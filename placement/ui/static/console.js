// Comforts of the console. Whatever shows something works without this file, too.
"use strict";
