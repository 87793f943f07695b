import { ByteReader } from "./byte-reader.ts";
import { ProtocolError } from "./protocol-error.ts";

/** Values of the option ENCRYPTION (MS-TDS 2.2.6.5). */
export const encryption = { off: 0x00, on: 0x01, notSupported: 0x02, required: 0x03 } as const;

const options = { version: 0x00, encryption: 0x01, instance: 0x02, threadId: 0x03, mars: 0x04, terminator: 0xff };
const optionsMax = 32;

export interface PreLogin {
  readonly encryption: number;
  readonly mars: boolean;
}

export function decodePreLogin(payload: Buffer): PreLogin {
  const reader = new ByteReader(payload);
  const values = new Map<number, Buffer>();
  for (;;) {
    const option = reader.uint8();
    if (option === options.terminator) break;
    if (values.size >= optionsMax) throw new ProtocolError("a pre-login message has too many options");
    const offset = reader.uint16BigEndian();
    values.set(option, reader.at(offset, reader.uint16BigEndian()));
  }
  return {
    encryption: (values.get(options.encryption)?.[0] ?? encryption.notSupported) & 0x03,
    mars: values.get(options.mars)?.[0] === 1,
  };
}

/** MARS is always off: a client then opens a connection for each concurrent request. */
export function encodePreLogin(response: PreLogin, version: readonly [number, number, number]): Buffer {
  const [major, minor, build] = version;
  const values: readonly (readonly [number, readonly number[]])[] = [
    [options.version, [major, minor, build >> 8, build & 0xff, 0, 0]],
    [options.encryption, [response.encryption]],
    [options.instance, [0]],
    [options.threadId, []],
    [options.mars, [response.mars ? 1 : 0]],
  ];
  const head: number[] = [];
  const data: number[] = [];
  for (const [option, value] of values) {
    const offset = values.length * 5 + 1 + data.length;
    head.push(option, offset >> 8, offset & 0xff, value.length >> 8, value.length & 0xff);
    data.push(...value);
  }
  return Buffer.from([...head, options.terminator, ...data]);
}
