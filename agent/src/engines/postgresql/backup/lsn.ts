/** Parses a log sequence number (LSN) as PostgreSQL prints it: two hexadecimal numbers, such as `16/B374D848`. */
export function parseLsn(text: string): bigint {
  const found = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/.exec(text);
  if (found === null) throw new Error(`${text} is not an LSN`);
  return (BigInt(`0x${found[1]}`) << 32n) | BigInt(`0x${found[2]}`);
}

export function formatLsn(position: bigint): string {
  const hex = (value: bigint) => value.toString(16).toUpperCase();
  return `${hex(position >> 32n)}/${hex(position & 0xffff_ffffn)}`;
}

/** Segment size of all data directories: the default of initdb. */
export const segmentBytes = 16n << 20n;

/** Name of the segment file that contains an LSN, such as `000000010000000000000003`. */
export function segmentName(timeline: number, position: bigint): string {
  const perFile = 0x1_0000_0000n / segmentBytes;
  const number = position / segmentBytes;
  const hex = (value: bigint | number) => value.toString(16).toUpperCase().padStart(8, "0");
  return `${hex(timeline)}${hex(number / perFile)}${hex(number % perFile)}`;
}

/** First LSN of a segment; undefined for names of other files, such as timeline histories. */
export function segmentStart(name: string): { readonly timeline: number; readonly position: bigint } | undefined {
  const found = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})$/.exec(name);
  if (found === null) return undefined;
  const perFile = 0x1_0000_0000n / segmentBytes;
  const number = BigInt(`0x${found[2]}`) * perFile + BigInt(`0x${found[3]}`);
  return { timeline: Number.parseInt(found[1] ?? "", 16), position: number * segmentBytes };
}
