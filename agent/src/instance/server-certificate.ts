import { mkdir, readdir, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { IssueServerCertificateRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { EngineCheck } from "../engines/engine-driver.ts";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";
import { makeKeyWithRequest } from "@holdfast/mtls/certificate-request.ts";
import { agentMethods, type ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { endOf, renewalTime } from "@holdfast/mtls/machine-identity.ts";
import { pemOf } from "@holdfast/mtls/pem.ts";

/** The engine's own certificate: server.key, server.crt and ca.crt, swapped together. */
export interface ServerCertificate {
  /**
   * Gets one when there is none, when two thirds of its life are over, or when the authorities changed; true when the
   * files changed. Waits for a controller only when there is none that is good; rejects when the controller refuses.
   * `forMembers`: one that other members do not take is replaced as soon as a controller is there.
   */
  ensure(signal: AbortSignal, options?: { readonly forMembers?: boolean }): Promise<boolean>;
  /** When to call ensure again; undefined before the first. */
  readonly renewalAt: number | undefined;
  /** Of the authorities by which it was issued; 0 without one. */
  readonly authorityGeneration: number;
  check(): EngineCheck;
}

export interface ServerCertificateDeps {
  /** The link that the engine's settings name; the files are in a directory beside it. */
  readonly path: string;
  readonly channel: () => ControllerChannel | undefined;
  readonly connected: (signal: AbortSignal) => Promise<ControllerChannel>;
  /** Of the authorities that the machine knows. */
  readonly authorityGeneration: () => number;
  readonly now: () => number;
}

interface Facts {
  /** Other members of the service take it for this one's. */
  readonly forMembers?: boolean;
  readonly issuedAt: number;
  readonly notAfter: number;
  readonly authorityGeneration: number;
}

const timeoutMs = 10_000;

export function createServerCertificate(deps: ServerCertificateDeps): ServerCertificate {
  const { path, channel, connected, authorityGeneration, now } = deps;
  let facts: Facts | undefined;
  let forMembers = false;
  let refusal = "";

  async function issue(connection: ControllerChannel): Promise<void> {
    const { privateKey, request } = makeKeyWithRequest();
    const issuedAt = now();
    const message = create(IssueServerCertificateRequestSchema, { certificateRequest: request, forMembers });
    const response = await connection.unary(agentMethods.issueServerCertificate, message, timeoutMs);
    const issued: Facts = {
      forMembers,
      issuedAt,
      notAfter: endOf(response),
      authorityGeneration: Number(response.authorityGeneration),
    };
    await swap([
      ["server.key", privateKey],
      ["server.crt", pemOf(response.chain)],
      ["ca.crt", response.trustBundle],
      ["facts.json", JSON.stringify(issued)],
    ]);
    facts = issued;
  }

  /** The link moves once all files are there: key and certificate always belong together. */
  async function swap(files: readonly (readonly [name: string, content: string])[]): Promise<void> {
    const home = dirname(path);
    const fresh = `tls-${now()}`;
    await mkdir(join(home, fresh), { recursive: true, mode: 0o750 });
    await Promise.all(files.map(([name, content]) => writeDurably(join(home, fresh, name), content, 0o640)));
    await rm(`${path}.new`, { force: true });
    await symlink(fresh, `${path}.new`);
    await rename(`${path}.new`, path);
    const old = (await readdir(home)).filter((name) => /^tls-\d+$/.test(name) && name !== fresh);
    for (const name of old) await rm(join(home, name), { recursive: true });
  }

  const dueAt = (of: Facts) =>
    of.authorityGeneration < authorityGeneration() || (forMembers && of.forMembers !== true) ? 0 : renewalTime(of);

  return {
    get renewalAt() {
      return facts && dueAt(facts);
    },
    get authorityGeneration() {
      return facts?.authorityGeneration ?? 0;
    },
    async ensure(signal, options = {}) {
      forMembers = options.forMembers ?? false;
      if (facts === undefined) {
        const stored = await readIfThere(join(path, "facts.json"));
        if (stored !== undefined) facts = JSON.parse(stored.toString("utf8")) as Facts;
      }
      const isGood = facts !== undefined && facts.notAfter > now();
      if (facts !== undefined && isGood && dueAt(facts) > now()) return false;
      const connection = isGood ? channel() : await connected(signal);
      if (connection === undefined) return false;
      try {
        await issue(connection);
        refusal = "";
        return true;
      } catch (error) {
        refusal = (error as Error).message;
        if (!isGood) throw error;
        return false;
      }
    },
    check() {
      const because = refusal === "" ? "" : ` (${refusal})`;
      if (facts === undefined)
        return { name: "certificate", status: "unhealthy", reason: `There is none yet${because}.` };
      const { issuedAt, notAfter } = facts;
      if (notAfter <= now()) return { name: "certificate", status: "unhealthy", reason: `It has ended${because}.` };
      const late = now() > issuedAt + ((notAfter - issuedAt) * 5) / 6;
      if (late)
        return { name: "certificate", status: "degraded", reason: `It ends soon and is not renewed${because}.` };
      return { name: "certificate", status: "healthy", reason: "" };
    },
  };
}
