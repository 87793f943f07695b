import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { testImage } from "../engines/test-image.ts";
import { freePorts } from "../platform/free-ports.ts";
import { testUid } from "../platform/platform-software.ts";

/** Debian's headless Chromium. */
export interface Chromium {
  readonly browser: Browser;
  close(): Promise<void>;
}

/**
 * Starts Chromium, which resolves these names to loopback, with all ports mapped to one where that is given. Resolves
 * with the reason if this host cannot have it.
 */
export async function startChromium(names: Readonly<Record<string, number | undefined>>): Promise<Chromium | string> {
  const image = await testImage("pages");
  if (typeof image === "string") return image;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-chromium-"));
  chmodSync(directory, 0o755);
  const profile = join(directory, "profile");
  mkdirSync(profile);
  if (process.getuid?.() === 0) chownSync(profile, testUid, testUid);
  const [port = 0] = await freePorts(1);
  const argv = [
    "chromium-headless-shell",
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    `--user-data-dir=${profile}`,
    `--host-resolver-rules=${rulesOf(names)}`,
    `--remote-debugging-port=${port}`,
    "about:blank",
  ];
  const running = await image.start(argv, [directory], /DevTools listening/);
  const browser = await chromium.connectOverCDP(`http://127.0.0.1:${port}`);
  return {
    browser,
    async close() {
      await browser.close().catch(() => undefined);
      await running.end("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function rulesOf(names: Readonly<Record<string, number | undefined>>): string {
  const rule = ([name, port]: [string, number | undefined]) =>
    `MAP ${name} 127.0.0.1${port === undefined ? "" : `:${port}`}`;
  return Object.entries(names).map(rule).join(", ");
}
