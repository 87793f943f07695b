/** Encodes DER certificates as PEM, one after the other. */
export function pemOf(chain: readonly Uint8Array[]): string {
  return chain.map((der) => `-----BEGIN CERTIFICATE-----\n${folded(der)}\n-----END CERTIFICATE-----\n`).join("");
}

function folded(der: Uint8Array): string {
  const text = Buffer.from(der.buffer, der.byteOffset, der.byteLength).toString("base64");
  return (text.match(/.{1,64}/g) ?? []).join("\n");
}
