import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { watchDirectory } from "./directory-watch.ts";

const long = 600_000;
const never = new AbortController().signal;

async function open(matches?: (name: string) => boolean) {
  const directory = await mkdtemp(join(tmpdir(), "watch-"));
  const watching = watchDirectory(directory, matches);
  onTestFinished(async () => {
    watching.close();
    await rm(directory, { recursive: true });
  });
  return { watching, put: (name: string) => writeFile(join(directory, name), "") };
}

test("a change during or before the wait ends it", async () => {
  const { watching, put } = await open();
  const changed = watching.changed(long, never);
  await put("first");
  await changed;
  await put("second");
  await watching.changed(long, never);
});

test("an entry with another name ends no wait", async () => {
  const { watching, put } = await open((name) => name === "ready");
  await put("other");
  const waiting = watching.changed(long, AbortSignal.timeout(200));
  await expect(waiting).rejects.toMatchObject({ name: "TimeoutError" });
  await put("ready");
  await watching.changed(long, never);
});

test("a wait ends with its signal", async () => {
  const { watching } = await open();
  const ended = new AbortController();
  const waiting = watching.changed(long, ended.signal);
  ended.abort(new Error("the settings changed"));
  await expect(waiting).rejects.toThrow("the settings changed");
});

test("without a watch the wait ends after its time", async () => {
  const watching = watchDirectory(join(tmpdir(), "a-missing-directory"));
  await watching.changed(1, never);
  watching.close();
});
