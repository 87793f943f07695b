import { createPrivateKey, X509Certificate } from "node:crypto";
import type { IssuedCertificate } from "./domain-certificate.ts";

const chainMax = 65_536;
const certificatesMax = 10;

/**
 * The certificate in an authority's response. Throws with the reason if it is not one of the domain for the private
 * key. Its chain is encoded again, so that it contains certificates alone.
 */
export function checkedCertificate(
  response: string,
  { domain, key }: { readonly domain: string; readonly key: string },
): Omit<IssuedCertificate, "directoryUrl" | "sealedKey"> {
  if (response.length > chainMax) throw new Error("the chain of the certificate is too long");
  const blocks = response.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const [leaf, ...others] = blocks.map((block) => new X509Certificate(block));
  if (leaf === undefined || others.length >= certificatesMax) throw new Error("the response has no certificate");
  if (leaf.checkHost(domain) === undefined) throw new Error("the certificate is of another name");
  if (!leaf.checkPrivateKey(createPrivateKey(key))) throw new Error("the certificate is for another key");
  const [from, to] = [leaf.validFromDate.getTime(), leaf.validToDate.getTime()];
  return {
    chain: [leaf, ...others].map((certificate) => certificate.toString().trim()).join("\n"),
    issuer: commonNameOf(leaf.issuer),
    expiresAt: to,
    renewAt: from + ((to - from) * 2) / 3,
  };
}

/** `subject`: one attribute a line, such as `CN=R11`. */
function commonNameOf(subject: string): string {
  const attributes = new Map(
    subject.split("\n").map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
  return attributes.get("CN") ?? attributes.get("O") ?? subject.replaceAll("\n", ", ");
}
