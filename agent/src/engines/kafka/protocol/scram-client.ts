import { createHash, createHmac, randomBytes } from "node:crypto";
import { saslAuthenticate } from "./apis.ts";
import type { Connection } from "./connection.ts";
import { errorCodes, KafkaRefusal, requireSuccess } from "./protocol-error.ts";

/** Salted password of a SCRAM mechanism (RFC 5802): it is sufficient to sign in. */
export interface ScramSecret {
  readonly mechanism: ScramMechanism;
  readonly iterations: number;
  readonly salt: Buffer;
  readonly saltedPassword: Buffer;
}

export type ScramMechanism = "SCRAM-SHA-256" | "SCRAM-SHA-512";

/**
 * True if the broker accepts the user with this salted password. It has another password if its salt or iterations
 * differ. False for a user that does not exist.
 */
export async function acceptsUser(connection: Connection, user: string, secret: ScramSecret): Promise<boolean> {
  const { mechanism, salt, iterations, saltedPassword } = secret;
  const hashName = mechanism === "SCRAM-SHA-256" ? "sha256" : "sha512";
  await connection.handshake(mechanism);
  const nonce = randomBytes(18).toString("base64");
  const first = `n=${user.replaceAll("=", "=3D").replaceAll(",", "=2C")},r=${nonce}`;
  const exchange = async (text: string) => {
    const answer = await connection.call(saslAuthenticate, { bytes: Buffer.from(text) });
    requireSuccess("SaslAuthenticate", answer);
    return answer.bytes.toString("utf8");
  };
  try {
    const challenge = await exchange(`n,,${first}`);
    const fields = new Map(challenge.split(",").map((part) => [part.slice(0, 2), part.slice(2)]));
    if (fields.get("s=") !== salt.toString("base64") || Number(fields.get("i=")) !== iterations) return false;
    const final = `c=biws,r=${fields.get("r=") ?? ""}`;
    const clientKey = createHmac(hashName, saltedPassword).update("Client Key").digest();
    const storedKey = createHash(hashName).update(clientKey).digest();
    const signature = createHmac(hashName, storedKey).update(`${first},${challenge},${final}`).digest();
    const proof = Buffer.from(clientKey.map((byte, at) => byte ^ (signature[at] ?? 0)));
    await exchange(`${final},p=${proof.toString("base64")}`);
    return true;
  } catch (error) {
    if (error instanceof KafkaRefusal && error.code === errorCodes.saslAuthenticationFailed) return false;
    throw error;
  }
}
