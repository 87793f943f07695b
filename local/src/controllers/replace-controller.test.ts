import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseControllerJoinFile } from "./controller-join-file.ts";
import { joinFileOf, writePrepared } from "./prepared-directory.ts";
import { replaceController } from "./replace-controller.ts";

const block = `127.${100 + (process.pid % 100)}.8`;
const addresses = [1, 2, 3].map((number) => `${block}.${number}`);
const [lost = ""] = addresses;
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-replaced-"));
});
afterEach(() => rmSync(root, { recursive: true }));

const replace = (directory: string, address: string) =>
  replaceController({
    directory,
    address,
    now: Date.now,
    signal: new AbortController().signal,
    note: () => undefined,
  });

test("a directory without a plan, and a host that is not in it, are refused", async () => {
  await expect(replace(root, lost)).rejects.toThrow(`${root} is not a directory of \`holdfast controllers prepare\``);
  await prepare();
  await expect(replace(root, "192.0.2.7")).rejects.toThrow(`192.0.2.7 is not one of the hosts of ${root}`);
});

test("without etcd of the other hosts nothing is written", async () => {
  await prepare();
  const before = readFileSync(joinFileOf(root, lost), "utf8");
  const others = addresses.slice(1).join(", ");
  await expect(replace(root, lost)).rejects.toThrow(`etcd of ${others} does not respond: connect to port 2379`);
  expect(readFileSync(joinFileOf(root, lost), "utf8")).toBe(before);
  expect(parseControllerJoinFile(before).etcd_state).toBe("new");
});

function prepare() {
  const plan = { domain: "svc.example.com", history: "192.0.2.9", objects: "s3://backups", addresses, replaced: [] };
  return writePrepared(root, plan, "key", Date.now());
}
