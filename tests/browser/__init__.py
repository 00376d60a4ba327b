"""The console in a real browser: headless Chromium, steered by Playwright."""
