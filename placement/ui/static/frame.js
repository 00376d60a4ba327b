// Conveniences on every page: copy buttons, the search shortcut, and following the changes of the cloud.
"use strict";

(() => {
  // Without TLS, browsers deny access to the clipboard API, so the line is selected instead.
  async function copy(button) {
    const text = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(text.dataset.text ?? text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  function show(root) {
    for (const button of root.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });

  document.addEventListener("keydown", (event) => {
    const busy = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || busy || event.ctrlKey || event.metaKey || event.altKey) return;
    const search = document.querySelector("[data-search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  });

  // What the server unfolded is marked, so that what the reader unfolds or folds can be told from it.
  htmx.onLoad((content) => {
    show(content);
    for (const open of content.querySelectorAll("details[open]")) open.dataset.open = "";
  });

  const live = document.querySelector("[data-live]");
  if (!live) return;

  const PAUSE_MS = 5000;
  const RESTS_MS = 30000;
  const TOGGLED = "details[open]:not([data-open]), details[data-open]:not([open])";
  const POINTED_AT = ":is(a, button, summary, svg, tr, [title]):hover";
  let source, hasChanged = false, isTyped = false, movedAt = 0, nextAt = Date.now() + PAUSE_MS;

  // A page stands still while somebody reads: has typed, selected, focused or unfolded something, or points at it.
  function isRead() {
    const main = document.querySelector("#main");
    const focused = document.activeElement !== main && main.contains(document.activeElement);
    const pointed = Date.now() - movedAt < RESTS_MS && main.querySelector(POINTED_AT);
    return isTyped || focused || pointed || !getSelection().isCollapsed || main.querySelector(TOGGLED);
  }

  async function update() {
    hasChanged = isTyped = false;
    const began = Date.now();
    await htmx.ajax("GET", location.href, { target: "#main", select: "#main", swap: "outerHTML", selectOOB: "#as-of" });
    // A page that takes long is shown again the less often.
    nextAt = Date.now() + Math.max(PAUSE_MS, 20 * (Date.now() - began));
    live.textContent = "Live";
  }

  function look() {
    if (!hasChanged || document.hidden || Date.now() < nextAt) return;
    if (isRead()) live.textContent = "Show what changed";
    else update();
  }

  // Only the visible page follows: browsers allow few connections to a server.
  function follow() {
    const isPaused = sessionStorage.getItem("paused") === "yes";
    source?.close();
    live.setAttribute("aria-pressed", String(!isPaused));
    if (isPaused || document.hidden) return;
    const following = source = new EventSource(live.dataset.live);
    source.onmessage = () => { hasChanged = true; };
    source.onerror = () => {
      if (following === source && following.readyState === EventSource.CLOSED) setTimeout(follow, RESTS_MS);
    };
  }

  live.hidden = false;
  live.addEventListener("click", () => {
    if (live.textContent !== "Live") {
      update();
      return;
    }
    sessionStorage.setItem("paused", sessionStorage.getItem("paused") === "yes" ? "no" : "yes");
    follow();
  });
  document.addEventListener("input", () => { isTyped = true; });
  document.addEventListener("htmx:pushedIntoHistory", () => { isTyped = false; });
  document.addEventListener("pointermove", () => { movedAt = Date.now(); });
  document.addEventListener("visibilitychange", () => {
    hasChanged = true;
    follow();
  });
  setInterval(look, 1000);
  follow();
})();
