import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";

/** A new key with a certificate request. The key never leaves this machine. */
export interface KeyWithRequest {
  /** PKCS #8 PEM. */
  readonly privateKey: string;
  /** PKCS #10 in DER, without names: the controller determines them. */
  readonly request: Uint8Array;
}

/** Creates a P-256 key and a certificate request (PKCS #10) that is signed with it. */
export function createKeyWithRequest(): KeyWithRequest {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const exported = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  return { privateKey: exported, request: certificateRequest(privateKey, publicKey) };
}

const sequence = 0x30;
const bitString = 0x03;
const versionZero = Buffer.from("020100", "hex");
const noName = Buffer.from("3000", "hex");
const noAttributes = Buffer.from("a000", "hex");
/** ecdsa-with-SHA256, RFC 5758 section 3.2. */
const signatureAlgorithm = Buffer.from("300a06082a8648ce3d040302", "hex");

/**
 * Encodes a request by RFC 2986 section 4. It is written by hand because a library for it takes longer to load than the
 * remainder of the agent.
 */
function certificateRequest(privateKey: KeyObject, publicKey: KeyObject): Uint8Array {
  const key = publicKey.export({ type: "spki", format: "der" });
  const information = der(sequence, versionZero, noName, key, noAttributes);
  const signature = createSign("sha256").update(information).sign(privateKey);
  return der(sequence, information, signatureAlgorithm, der(bitString, Buffer.from([0]), signature));
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.byteLength;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
