/** What an increment has to know of an entry of a tar (POSIX ustar). */
export interface TarEntry {
  /** Below the tar's root, without a slash at either end; empty for the root itself. */
  readonly path: string;
  /** `other`: whatever is neither, such as a link. */
  readonly kind: "file" | "directory" | "other";
  /** Permission bits. */
  readonly mode: number;
  /** Of the content that follows, padded to whole blocks. */
  readonly size: number;
}

export const tarBlockBytes = 512;

/** Reads a header; undefined for the block of zeros that ends a tar. Throws for what is no header. */
export function readTarHeader(block: Buffer): TarEntry | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0);
  if (sum !== numberAt(block, 148, 8)) throw new Error("a header of the tar has another checksum");
  const isUstar = block.subarray(257, 262).toString("latin1") === "ustar";
  const prefix = isUstar ? textAt(block, 345, 155) : "";
  const name = textAt(block, 0, 100);
  const kind = kindOf(block.readUInt8(156));
  const size = kind === "directory" ? 0 : numberAt(block, 124, 12);
  return {
    path: pathOf(prefix === "" ? name : `${prefix}/${name}`),
    kind,
    mode: numberAt(block, 100, 8) & 0o777,
    size,
  };
}

/** Of zeros behind content of this size. */
export function tarPaddingOf(size: number): number {
  return (tarBlockBytes - (size % tarBlockBytes)) % tarBlockBytes;
}

function kindOf(flag: number): TarEntry["kind"] {
  if (flag === 0 || flag === 0x30) return "file";
  return flag === 0x35 ? "directory" : "other";
}

/** Nothing that is named leads out of the root. */
function pathOf(name: string): string {
  const steps = name.split("/").filter((step, at) => !(step === "." || (step === "" && at > 0)));
  if (steps.some((step) => step === "" || step === "..")) throw new Error(`${name} is no path of the tar's own`);
  return steps.join("/");
}

function textAt(block: Buffer, at: number, length: number): string {
  const field = block.subarray(at, at + length);
  const end = field.indexOf(0);
  return (end < 0 ? field : field.subarray(0, end)).toString("utf8");
}

/** Octal, or behind a set highest bit the number itself, as large files have it. */
function numberAt(block: Buffer, at: number, length: number): number {
  if (block.readUInt8(at) >= 0x80) return block.readUIntBE(at + length - 6, 6);
  const text = textAt(block, at, length).trim();
  if (!/^[0-7]*$/.test(text)) throw new Error("a header of the tar has no number where one belongs");
  return text === "" ? 0 : Number.parseInt(text, 8);
}
