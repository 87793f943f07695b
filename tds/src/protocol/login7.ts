import { ByteReader } from "./byte-reader.ts";
import { ProtocolError } from "./protocol-error.ts";

/** A request to sign in (MS-TDS 2.2.6.4). */
export interface Login7 {
  readonly tdsVersion: number;
  readonly packetSize: number;
  readonly hostName: string;
  readonly userName: string;
  readonly password: string;
  readonly appName: string;
  readonly serverName: string;
  readonly clientInterface: string;
  readonly language: string;
  readonly database: string;
  readonly usesIntegratedSecurity: boolean;
  /** ApplicationIntent=ReadOnly. */
  readonly isReadOnly: boolean;
  readonly changesPassword: boolean;
}

const fixedBytes = 94;
const textMax = 128;
const integratedSecurity = 0x80;
const readOnlyIntent = 0x20;
const changePassword = 0x01;

export function decodeLogin7(payload: Buffer): Login7 {
  const reader = new ByteReader(payload);
  if (payload.length < fixedBytes) throw new ProtocolError(`a LOGIN7 message has ${payload.length} bytes`);
  const length = reader.uint32();
  if (length > payload.length) throw new ProtocolError(`a LOGIN7 message has ${payload.length} of ${length} bytes`);
  const tdsVersion = reader.uint32();
  const packetSize = reader.uint32();
  reader.bytes(12);
  reader.uint8();
  const flags2 = reader.uint8();
  const typeFlags = reader.uint8();
  const flags3 = reader.uint8();
  reader.bytes(8);
  const text = (max = textMax) => {
    const { offset, length: units } = region(reader);
    if (units > max) throw new ProtocolError(`a name in LOGIN7 has ${units} characters; the limit is ${max}`);
    return reader.at(offset, units * 2);
  };
  const hostName = text().toString("utf16le");
  const userName = text().toString("utf16le");
  const password = unscramble(text()).toString("utf16le");
  const appName = text().toString("utf16le");
  const serverName = text().toString("utf16le");
  // Feature extensions are optional requests, and none is acknowledged.
  region(reader);
  const clientInterface = text().toString("utf16le");
  const language = text().toString("utf16le");
  const database = text().toString("utf16le");
  return {
    tdsVersion,
    packetSize,
    hostName,
    userName,
    password,
    appName,
    serverName,
    clientInterface,
    language,
    database,
    usesIntegratedSecurity: (flags2 & integratedSecurity) !== 0,
    isReadOnly: (typeFlags & readOnlyIntent) !== 0,
    changesPassword: (flags3 & changePassword) !== 0,
  };
}

function region(reader: ByteReader): { offset: number; length: number } {
  const offset = reader.uint16();
  return { offset, length: reader.uint16() };
}

/** Passwords are obfuscated, not encrypted: each byte has its halves swapped and is combined with 0xA5. */
function unscramble(bytes: Buffer): Buffer {
  return Buffer.from(bytes.map((byte) => swapHalves(byte ^ 0xa5)));
}

function swapHalves(byte: number): number {
  return ((byte << 4) & 0xf0) | (byte >> 4);
}
