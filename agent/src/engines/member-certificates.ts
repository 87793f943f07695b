import { createECDH, createPrivateKey, hkdfSync, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readEngineFile } from "../os/engine-file.ts";
import type { EngineDeps } from "./engine-deps.ts";
import type { Instance } from "./instance.ts";

/**
 * Parties of the connections between and inside machines of an engine whose members elect their leader. `server` is the
 * engine. The members' authority signs those of the engines and of the agents; its key follows from the secret of the
 * service, so each machine can sign its own, and no other service's machine can. The front's certificate signs itself:
 * only the engine beside it accepts it.
 */
const parties = ["server", "front", "agent"] as const;
export type Party = (typeof parties)[number];

/** Prefix of the subjects of these certificates. */
const platform = "holdfast";
const [clientsName, authorityName] = ["clients.pem", "members.pem"];
/** The certificates outlive every machine. */
const days = "36500";

/** Common name in a party's certificate. */
export const principalOf = (party: Party): string => `${platform}-${party}`;

/** Paths of the PEM files in the directory of the certificates. */
export interface CertificateFiles {
  readonly directory: string;
  /** Key and certificate of a party. */
  party(party: Party): string;
  /** Certificates that the engine's ports for clients trust: those of the front and of the agent. */
  readonly trustedClients: string;
  /** The members' authority, which the other ports and the clients of all ports trust. */
  readonly membersAuthority: string;
}

export function certificateFilesIn(directory: string): CertificateFiles {
  return {
    directory,
    party: (party) => join(directory, `${party}.pem`),
    trustedClients: join(directory, clientsName),
    membersAuthority: join(directory, authorityName),
  };
}

/** Creates the certificates of all parties, unless they exist. They appear together or not at all. */
export async function createCertificates(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  { directory }: CertificateFiles,
  signal: AbortSignal,
): Promise<void> {
  if (existsSync(directory)) return;
  const partial = `${directory}.partial`;
  const write = (path: string, input: string) => run(["tee", path], { input, signal });
  await run(["rm", "-rf", partial], { signal });
  await run(["mkdir", "-m", "0750", partial], { signal });
  const [authority, authorityKey] = [join(partial, authorityName), join(partial, "authority.key")];
  await run(["install", "-m", "0600", "/dev/null", authorityKey], { signal });
  await run(["dd", "status=none", `of=${authorityKey}`], { input: authorityKeyOf(instance), signal });
  const common = ["-days", days, "-sha256"];
  const subject = ["-subj", `/CN=${platform}-members`];
  await run(["openssl", "req", "-x509", "-key", authorityKey, "-out", authority, ...subject, ...common], { signal });
  const certificates: Partial<Record<Party, string>> = {};
  for (const party of parties) {
    const [key, certificate] = [join(partial, `${party}.pem`), join(partial, `${party}.crt`)];
    const signer = party === "front" ? [] : ["-CA", authority, "-CAkey", authorityKey, "-extensions", "usr_cert"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    const files = ["-keyout", key, "-out", certificate, "-subj", `/CN=${principalOf(party)}`];
    await run(["openssl", "req", "-x509", ...curve, ...signer, ...files, ...common], { signal });
    // The agent is in the engine's group.
    await run(["chmod", "0640", key, certificate], { signal });
    const pem = await readEngineFile(certificate);
    certificates[party] = pem;
    await run(["tee", "-a", key], { input: pem, signal });
  }
  const { front = "", agent = "" } = certificates;
  await write(join(partial, clientsName), front + agent);
  await run(["rm", authorityKey], { signal });
  await run(["chmod", "0640", authority, join(partial, clientsName)], { signal });
  await run(["sync", "--file-system", partial], { signal });
  await run(["mv", partial, directory], { signal });
}

/** Key of the members' authority: PKCS #8, the same on each machine of the service. */
function authorityKeyOf({ spec }: Pick<Instance, "spec">): string {
  // The machine of a drill has no other members, ever.
  const secret = spec.peers === undefined ? randomBytes(32) : spec.peers.secret;
  if (secret.length === 0) throw new Error("The settings have no secret of the members.");
  const scalar = Buffer.from(hkdfSync("sha256", secret, "", `${platform} ${spec.engine} members' authority`, 32));
  // Below 2^255, and so below the order of the curve.
  scalar.writeUInt8(scalar.readUInt8() & 0x7f);
  const curve = createECDH("prime256v1");
  curve.setPrivateKey(scalar);
  const point = curve.getPublicKey();
  const coordinate = (from: number) => point.subarray(from, from + 32).toString("base64url");
  const key = { kty: "EC", crv: "P-256", x: coordinate(1), y: coordinate(33), d: scalar.toString("base64url") };
  return createPrivateKey({ key, format: "jwk" }).export({ type: "pkcs8", format: "pem" }).toString();
}
