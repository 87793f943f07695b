import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { heapEnvironment, heapOptions } from "./job-component.ts";

const writeMuch = join(import.meta.dirname, "../../../test/support/backup/write-much.ts");

test("what writes a backup takes no more memory for much than for little", async () => {
  const most = async (mebibytes: number) => {
    const argv = [...heapOptions.bulk, writeMuch, String(mebibytes)];
    const { stdout } = await promisify(execFile)(process.execPath, argv, { env: heapEnvironment });
    return Number(stdout);
  };
  const [little, much] = [await most(64), await most(512)];
  expect(little).toBeGreaterThan(40);
  // Memory that grew with what is written would be 448 MiB more; a busy machine collects garbage later.
  expect(much).toBeLessThan(little + 64);
  expect(much).toBeLessThan(200);
});
