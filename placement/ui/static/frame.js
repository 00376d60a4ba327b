// Conveniences on every page: copy buttons, the search shortcut, and automatic reloading.
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

  // Not while the visitor is filling in a form or the page is hidden.
  function reload() {
    const busy = document.activeElement?.closest("input, textarea, select");
    if (!busy && !document.hidden) location.reload();
  }

  show(document);
  document.body.addEventListener("htmx:afterSwap", (event) => show(event.detail.elt));
  const refresh = document.querySelector("[data-refresh]");
  if (refresh) {
    const seconds = Number(refresh.dataset.refresh);
    refresh.hidden = false;
    refresh.addEventListener("click", () => {
      const address = new URL(location.href);
      if (seconds > 0) address.searchParams.delete("refresh");
      else address.searchParams.set("refresh", "10");
      location.replace(address);
    });
    if (seconds > 0) setInterval(reload, 1000 * seconds);
  }
})();
