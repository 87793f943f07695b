import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { heapEnvironment, heapOptions } from "./job-component.ts";

const writeMuch = join(import.meta.dirname, "../../../testing/src/backup/write-large-backup.ts");

test("the memory of a backup job does not grow with the data", async () => {
  const highest = async (mebibytes: number) => {
    const argv = [...heapOptions.bulk, writeMuch, String(mebibytes)];
    const { stdout } = await promisify(execFile)(process.execPath, argv, { env: heapEnvironment });
    return Number(stdout);
  };
  const [little, much] = [await highest(64), await highest(512)];
  expect(little).toBeGreaterThan(40);
  // Memory that grows with the data would be 448 MiB more; a busy machine collects garbage later.
  expect(much).toBeLessThan(little + 64);
  expect(much).toBeLessThan(200);
});
