import { spawn } from "node:child_process";
import { dirname } from "node:path";
import { profilesFile } from "@holdfast/sdk/node/profiles.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { createPermanentFiles } from "../private-files.ts";

export function addConsole(console: CliCommand): void {
  console
    .option("--no-open", "print the address instead; it signs one browser in, within a minute")
    .example("console")
    .example("console --no-open")
    .does(async (context, { open }: { open: boolean }) => {
      const { code } = await context.userClient.sessions.createCode();
      const address = `${context.settings.baseUrl.replace(/\/+$/, "")}/console/#code=${code}`;
      if (open && (await openInBrowser(context, address))) context.note("the console opens in your browser");
      else context.output.show({ address });
    });
}

/**
 * Opens a page of the local disk that redirects to the address. The address has a code, and all users of the host could
 * read it among the arguments of a process. Returns false without a program that opens pages.
 */
async function openInBrowser({ environment }: Context, address: string): Promise<boolean> {
  const program = openers.get(process.platform);
  const hasScreen = process.platform !== "linux" || Boolean(environment.DISPLAY ?? environment.WAYLAND_DISPLAY);
  if (program === undefined || !hasScreen) return false;
  const html = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${address}">`;
  const path = createPermanentFiles(dirname(profilesFile(environment)), "console").write("open.html", html);
  const [command, ...before] = program;
  const child = spawn(command, [...before, path], { detached: true, stdio: "ignore", env: environment });
  child.unref();
  return new Promise((resolve) => {
    child.once("error", () => resolve(false));
    child.once("spawn", () => resolve(true));
  });
}

/** Programs that open a page in the user's browser. */
const openers: ReadonlyMap<string, readonly [string, ...string[]]> = new Map([
  ["linux", ["xdg-open"]],
  ["darwin", ["open"]],
  ["win32", ["explorer"]],
]);
