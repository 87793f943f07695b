import { join } from "node:path";
import { expect, it } from "vitest";
import { fileSystemOf, isMounted, mountsIn, sourceOf } from "./mount-info.ts";

const table = mountsIn(
  [
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
    "25 24 0:23 / /dev/shm rw,relatime shared:2 - tmpfs tmpfs rw",
    "40 27 0:45 / /srv rw,relatime shared:9 - btrfs /dev/vdb rw,subvol=/",
    "41 27 0:46 /data /srv/my\\040data rw,relatime - btrfs /dev/vdb rw,subvol=/data",
    "42 27 7:1 / /mnt rw - xfs /dev/loop1 rw",
    "43 27 7:2 / /mnt rw - xfs /dev/loop2 rw",
    "",
  ].join("\n"),
);

// biome-ignore format: a table
it.each([
  ["the root",                          "/",             "/dev/vda"],
  ["below the root",                    "/var/lib",      "/dev/vda"],
  ["a subvolume",                       "/srv/my data/x", "/dev/vdb"],
  ["another one of the same",           "/srv/pool",     "/dev/vdb"],
  ["not what a name only begins with",  "/srv2",         "/dev/vda"],
  ["what was mounted last",             "/mnt/disks",    "/dev/loop2"],
  ["no device",                         "/dev/shm/x",    undefined],
])("the device of a path: %s", (_, path, source) => {
  expect(sourceOf(path, table)).toBe(source);
});

it("detects on this host the shared file systems and the mounts", async () => {
  expect(await fileSystemOf(import.meta.dirname)).toBe(await fileSystemOf(join(import.meta.dirname, "..")));
  expect(await fileSystemOf("/proc")).not.toBe(await fileSystemOf("/"));
  expect(await isMounted("/proc")).toBe(true);
  expect(await isMounted("/proc/self")).toBe(false);
  expect(await isMounted("/nowhere")).toBe(false);
});
