import { invalid } from "@holdfast/common/errors.ts";
import "reflect-metadata";
import { Pkcs10CertificateRequest, type PublicKey } from "@peculiar/x509";

const curves = new Set(["P-256", "P-384"]);
const requestBytesMax = 8192;

/**
 * The public key of a PKCS #10 request, proven by its signature (RFC 2986). Everything else in the request is ignored.
 * Throws INVALID_REQUEST for other data and for weak keys.
 */
export async function provenKey(request: Uint8Array): Promise<PublicKey> {
  if (request.byteLength > requestBytesMax) throw refused("is too large");
  let parsed: Pkcs10CertificateRequest;
  try {
    parsed = new Pkcs10CertificateRequest(new Uint8Array(request));
  } catch {
    throw refused("is not a PKCS #10 request");
  }
  const algorithm = parsed.publicKey.algorithm as { name: string; namedCurve?: string; modulusLength?: number };
  if (!isAcceptable(algorithm)) throw refused("has a key of a kind that is not accepted");
  const proven = await parsed.verify().catch(() => false);
  if (!proven) throw refused("is not signed by its own key");
  return parsed.publicKey;
}

function isAcceptable(algorithm: { name: string; namedCurve?: string; modulusLength?: number }): boolean {
  if (algorithm.name === "ECDSA") return curves.has(algorithm.namedCurve ?? "");
  if (algorithm.name === "Ed25519") return true;
  return algorithm.name.startsWith("RSA") && (algorithm.modulusLength ?? 0) >= 2048;
}

function refused(detail: string) {
  return invalid({ field: "certificate_request", code: "certificate_request", detail });
}
