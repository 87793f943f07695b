import { crc32, deflateRawSync } from "node:zlib";

/** A file for `zipOf`. */
export interface ZippedFile {
  readonly name: string;
  readonly content: string | Buffer;
  /** Unix mode; a regular file by default. */
  readonly mode?: number;
  /** Size in the zip's directory; the true one by default. */
  readonly claimedBytes?: number;
}

/** The 1st of January 1980, so that equal files are in equal zips. */
const [date, time] = [0x21, 0];
const deflated = 8;

/** A zip of these files. */
export function zipOf(files: readonly ZippedFile[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { name, content, mode = 0o100_644, claimedBytes } of files) {
    const [bytes, label] = [Buffer.from(content), Buffer.from(name)];
    const packed = deflateRawSync(bytes);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(deflated, 4);
    common.writeUInt16LE(time, 6);
    common.writeUInt16LE(date, 8);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(claimedBytes ?? bytes.length, 18);
    common.writeUInt16LE(label.length, 22);
    const local = Buffer.concat([signature(0x0403_4b50), common, label, packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(mode * 65_536, 6);
    rest.writeUInt32LE(at, 10);
    directory.push(Buffer.concat([signature(0x0201_4b50), Buffer.from([20, 3]), common, rest, label]));
    parts.push(local);
    at += local.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(entries.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, entries, signature(0x0605_4b50), end]);
}

function signature(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
