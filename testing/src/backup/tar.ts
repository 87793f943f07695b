/** Files by path; null for a directory. */
export type Tree = ReadonlyMap<string, Buffer | null>;

/** Tar archive of the tree, as an engine writes it (POSIX ustar). */
export function tarOf(tree: Tree): Buffer {
  const blocks: Buffer[] = [];
  for (const [path, content] of tree) {
    const size = content?.length ?? 0;
    blocks.push(headerOf(content === null ? `${path}/` : path, content === null ? "5" : "0", size));
    if (content !== null) blocks.push(content, Buffer.alloc((512 - (size % 512)) % 512));
  }
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

/** Header of one entry; its content follows, padded to 512 bytes. */
export function headerOf(name: string, flag: string, size: number): Buffer {
  const header = Buffer.alloc(512);
  const text = (value: string, at: number) => header.write(value, at, "latin1");
  text(name, 0);
  text(flag === "5" ? "0000700" : "0000600", 100);
  text("0000000", 108);
  text("0000000", 116);
  text(`${size.toString(8).padStart(11, "0")} `, 124);
  text("00000000000 ", 136);
  text("        ", 148);
  text(flag, 156);
  text("ustar\u000000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  text(`${sum.toString(8).padStart(6, "0")}\u0000 `, 148);
  return header;
}
