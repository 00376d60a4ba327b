"""The console in a real browser: headless Chromium, driven by Playwright."""
