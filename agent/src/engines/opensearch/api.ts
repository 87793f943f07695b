import { request } from "node:https";
import { readEngineFile } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { principalOf } from "../member-certificates.ts";
import { certificatesOf, portsOf } from "./layout.ts";

/** An answer of the engine that the platform's calls never need. */
const maxResponseBytes = 16 << 20;

/** The engine refused a request. */
export class OpensearchRefusal extends Error {
  override readonly name = "OpensearchRefusal";
  readonly status: number;
  /** Type of the engine's exception, such as `index_not_found_exception`; empty if it named none. */
  readonly type: string;

  constructor(status: number, type: string, reason: string) {
    super(reason);
    this.status = status;
    this.type = type;
  }
}

export interface Call {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** Path with its query, each part encoded. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: object;
}

/**
 * Sends a request to the engine's own port, with all rights by the agent's certificate. Resolves with the parsed JSON
 * of its answer; throws OpensearchRefusal for a status of 400 or more.
 */
export async function call(instance: Instance, { method, path, body }: Call, signal: AbortSignal): Promise<unknown> {
  const { party, membersAuthority } = certificatesOf(instance);
  const [pem, authority] = await Promise.all([readEngineFile(party("agent")), readEngineFile(membersAuthority)]);
  const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const sent = request(
      {
        host: instance.spec.address,
        port: portsOf(instance).http,
        method,
        path,
        key: pem,
        cert: pem,
        ca: authority,
        // The certificate names the party, and not its address.
        checkServerIdentity: (_host, { subject }) =>
          subject.CN === principalOf("server") ? undefined : new Error(`the engine presents ${String(subject.CN)}`),
        headers: body === undefined ? {} : { "content-type": "application/json" },
        agent: false,
        signal,
      },
      (response) => {
        let received = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          received += part;
          if (received.length > maxResponseBytes) response.destroy(new Error("the engine's answer is too large"));
        });
        response.once("error", reject);
        response.once("end", () => resolve({ status: response.statusCode ?? 0, text: received }));
      },
    );
    sent.once("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
  if (status >= 400) throw refusalOf(status, text);
  return parsed(text);
}

/** The engine answers a request before it is initialized with a plain text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function refusalOf(status: number, text: string): OpensearchRefusal {
  const answer = parsed(text);
  if (typeof answer !== "object" || answer === null) return new OpensearchRefusal(status, "", text.trim());
  const { error, message, reason } = answer as { error?: unknown; message?: unknown; reason?: unknown };
  if (typeof error === "object" && error !== null) {
    const found = error as { type?: unknown; reason?: unknown };
    return new OpensearchRefusal(status, textOf(found.type), textOf(found.reason));
  }
  // The security API names the refused fields in `reason`.
  return new OpensearchRefusal(status, "", textOf(message ?? reason ?? error ?? text));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? "");
}
