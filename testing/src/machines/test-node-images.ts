import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findGuestBoot, newestGuestPath } from "@holdfast/image/guest-boot.ts";
import { findImage, imagesDirectory, newestPath } from "@holdfast/image/node-image.ts";

/** Separate directory of images: the newest of the cache, the guests' kernel if one is built, and copies on request. */
export interface TestNodeImages {
  readonly imagesDir: string;
  /**
   * Adds another image besides the newest, once: the same engines, and /etc/other-image. Its programs are links to
   * the programs of the newest image, unless the image is to be `packed` elsewhere: then it has its own files, and no
   * engines.
   */
  addImage(options?: { readonly packed: boolean }): string;
  /** Makes this image the newest. */
  renew(id: string): void;
  /** Adds a copy of the guests' kernel under another id, the newest from now on. Throws where there is none. */
  otherGuest(): string;
  close(): void;
}

const otherId = "trixie-0000000000000001";
const otherGuestId = "guest-0000000000000001";

export function createTestNodeImages(): TestNodeImages {
  const imagesDir = mkdtempSync(join(tmpdir(), "holdfast-images-"));
  const newest = findImage(imagesDirectory(process.env), "trixie");
  // Without an image, the provider reports that.
  if (newest !== undefined) {
    symlinkSync(newest.root, join(imagesDir, newest.id));
    mkdirSync(dirname(newestPath(imagesDir, "trixie")), { recursive: true });
    writeFileSync(newestPath(imagesDir, "trixie"), newest.id);
  }
  const boot = findGuestBoot(imagesDirectory(process.env));
  if (boot !== undefined) {
    symlinkSync(dirname(boot.kernel), join(imagesDir, boot.id));
    mkdirSync(dirname(newestGuestPath(imagesDir)), { recursive: true });
    writeFileSync(newestGuestPath(imagesDir), boot.id);
  }
  let created = false;
  return {
    imagesDir,
    addImage({ packed } = { packed: false }) {
      if (newest === undefined) throw new Error("no image: run holdfast images make");
      if (created) return otherId;
      const root = join(imagesDir, otherId);
      mkdirSync(root, { mode: 0o755 });
      if (packed) {
        const heavy = ["./usr/lib/postgresql", "./usr/share", "./dev/?*", "*/libLLVM*", "*/libicudata*"];
        const excluded = heavy.map((path) => `--exclude=${path}`);
        execFileSync("sh", ["-c", `tar -C "$1" -c ${excluded.join(" ")} . | tar -C "$2" -x`, "sh", newest.root, root]);
      } else {
        symlinkSync(join(newest.root, "usr"), join(root, "usr"));
        mkdirSync(join(root, "tmp"));
        cpSync(join(newest.root, "etc"), join(root, "etc"), { recursive: true, verbatimSymlinks: true });
      }
      writeFileSync(join(root, "etc", "other-image"), "");
      created = true;
      return otherId;
    },
    otherGuest() {
      if (boot === undefined) throw new Error("nothing to boot from: run holdfast images make guest");
      mkdirSync(join(imagesDir, otherGuestId));
      for (const name of ["kernel", "initramfs"] as const) symlinkSync(boot[name], join(imagesDir, otherGuestId, name));
      writeFileSync(newestGuestPath(imagesDir), otherGuestId);
      return otherGuestId;
    },
    renew: (id) => writeFileSync(newestPath(imagesDir, "trixie"), id),
    close: () => rmSync(imagesDir, { recursive: true, force: true }),
  };
}
