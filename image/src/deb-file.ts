import { open } from "node:fs/promises";

/** The error of a file that is no Debian package; the message has the reason. */
export class DebFault extends Error {
  override readonly name = "DebFault";
}

const magic = "!<arch>\n";
const headerBytes = 60;
/** Members of a package, in order (deb(5)); their contents are compressed in various ways. */
const members = [/^debian-binary$/, /^control\.tar(\.\w+)?$/, /^data\.tar(\.\w+)?$/] as const;

/** Checks that a file is a complete archive with the members of a Debian package. Throws DebFault. */
export async function checkDeb(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const textAt = async (at: number, bytes: number) =>
      (await file.read(Buffer.alloc(bytes), 0, bytes, at)).buffer.toString("latin1");
    if ((await textAt(0, magic.length)) !== magic) throw new DebFault("it is no Debian package");
    let at = magic.length;
    for (const pattern of members) {
      const header = await textAt(at, headerBytes);
      const name = header.slice(0, 16).trimEnd().replace(/\/$/, "");
      const length = Number(header.slice(48, 58).trim() || Number.NaN);
      if (!header.endsWith("`\n") || !pattern.test(name) || !Number.isSafeInteger(length) || length < 0)
        throw new DebFault("it is no Debian package, or damaged");
      at += headerBytes + length;
      if (at > size) throw new DebFault("it is incomplete");
      // Members begin at even positions.
      at += at % 2;
    }
  } finally {
    await file.close();
  }
}
