/** A member of an `ar` archive. */
export interface ArchiveMember {
  readonly name: string;
  readonly content: string | Buffer;
  /** Size in the member's header; the true one by default. */
  readonly claimedBytes?: number;
}

/** Members of a Debian package; their contents are not packed files. */
export const debMembers: readonly ArchiveMember[] = [
  { name: "debian-binary", content: "2.0\n" },
  { name: "control.tar.xz", content: "control" },
  { name: "data.tar.xz", content: "contents" },
];

/** An `ar` archive (deb(5)), as a Debian package is. */
export function debOf(members: readonly ArchiveMember[] = debMembers): Buffer {
  const parts = [Buffer.from("!<arch>\n")];
  for (const { name, content, claimedBytes } of members) {
    const bytes = Buffer.from(content);
    const size = String(claimedBytes ?? bytes.length);
    parts.push(
      Buffer.from(`${name.padEnd(16)}${"0".padEnd(12)}${"0".padEnd(12)}${"100644".padEnd(8)}${size.padEnd(10)}\`\n`),
    );
    parts.push(bytes, Buffer.from(bytes.length % 2 === 0 ? "" : "\n"));
  }
  return Buffer.concat(parts);
}
