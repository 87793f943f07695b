import { mkdtemp, open as openFile, readFile, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cloneTierMissing } from "@holdfast/testing/machines/clone-tier.ts";
import { type DirectoryGuard, guardDirectory } from "@holdfast/testing/platform/directory-guard.ts";
import { startMountNamespace } from "@holdfast/testing/machines/mount-namespace.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { minDiskBytes, createDisk } from "../local/data-disk.ts";
import { loopsOf } from "../local/loop-device.ts";
import { type MachinePaths, machinePaths } from "../local/machine-paths.ts";
import { dataSource } from "./instance-config.ts";
import { mountDisk, unmountDisk, whileUnmounted } from "./mounted-disk.ts";

const skip = await cloneTierMissing();
const { signal } = new AbortController();

describe.skipIf(skip !== undefined)(
  `a data disk that is mounted${skip === undefined ? "" : ` (skipped: ${skip})`}`,
  () => {
    let guard: DirectoryGuard;
    let paths: MachinePaths;
    beforeEach(async () => {
      const directory = await mkdtemp(join(tmpdir(), "holdfast-disk-"));
      guard = guardDirectory(directory);
      paths = machinePaths(directory, "");
      const imageRoot = findImage(imagesDirectory(process.env), "trixie")?.root;
      await createDisk(paths, {
        kind: "loop",
        diskBytes: minDiskBytes,
        uid: null,
        imageRoot,
        tierDirectory: undefined,
      });
      await mountDisk(paths);
      await writeFile(mark(), "kept");
    });
    afterEach(async () => {
      await unmountDisk(paths);
      await guard.end();
    });
    const mark = () => join(dataSource(paths), "mark");

    it("is as full as its files that grow are long", async () => {
      const [mib, lengthMib] = [1024 ** 2, 24];
      const usedBytes = async () => {
        const { blocks, bfree, bsize } = await statfs(paths.dataDirectory);
        return (blocks - bfree) * bsize;
      };
      const before = await usedBytes();
      const names = ["a", "b", "c", "d"];
      const files = await Promise.all(names.map((name) => openFile(join(dataSource(paths), name), "a")));
      try {
        for (let written = 0; written < lengthMib; written += 1)
          for (const file of files) {
            await file.write(Buffer.alloc(mib, "x"));
            await file.datasync();
          }
        expect(await usedBytes()).toBeLessThan(before + (names.length * lengthMib + 4) * mib);
      } finally {
        for (const file of files) await file.close();
      }
    });

    it("is unmounted in all mount namespaces of the host during the work", async () => {
      const views = await Promise.all([startMountNamespace(), startMountNamespace()]);
      let open: readonly string[] | undefined;
      await whileUnmounted(paths, signal, async () => {
        open = await loopsOf(paths.diskFile);
      });
      expect(open).toEqual([]);
      expect(await readFile(mark(), "utf8")).toBe("kept");
      for (const view of views) await view.end("SIGKILL");
    });

    it("stays mounted while a program has a file of it open", async () => {
      const view = await startMountNamespace(dataSource(paths));
      let done = false;
      const used = whileUnmounted(paths, signal, async () => {
        done = true;
      });
      await expect(used).rejects.toThrow("A program of the host has the data disk open.");
      expect(done).toBe(false);
      expect(await readFile(mark(), "utf8")).toBe("kept");
      await view.end("SIGKILL");
      await whileUnmounted(paths, signal, async () => {
        done = true;
      });
      expect(done).toBe(true);
    });
  },
);
