import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { decode, streamEncode } from "dns-packet";
import { freePorts } from "../platform/free-ports.ts";
import { startTemporaryProcess } from "../platform/temporary-process.ts";
import { testGoProgram } from "./go-program.ts";

/** Let's Encrypt's ACME server for tests, which validates as RFC 8555 requires. */
const pebbleModule = {
  module: "github.com/letsencrypt/pebble/v2",
  version: "v2.10.1",
  sum: "h1:oKHx3lgN4e5Nno2LKTMrVx+b+NkDptkO9aDireiBDGE=",
  package: "github.com/letsencrypt/pebble/v2/cmd/pebble",
};

/** A public authority, for which every name is this host. */
export interface Pebble {
  readonly directoryUrl: string;
  /** PEM file of the authority of its listener. */
  readonly caFile: string;
  /** Port at which it finds this host's port 80. */
  readonly httpPort: number;
  /** The root of the certificates that it issues, PEM. */
  root(): Promise<string>;
  /** Stops the process as it is, so that requests to it have no response. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

export const pebbleProgram = () => testGoProgram(pebbleModule);

export interface PebbleOptions {
  /** Lifetime of certificates. */
  readonly validitySeconds?: number;
  /** Domains that it refuses. */
  readonly refused?: readonly string[];
}

export async function startPebble(program: string, options: PebbleOptions = {}): Promise<Pebble> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-pebble-"));
  const [port = 0, managementPort = 0, httpPort = 0, tlsPort = 0] = await freePorts(4);
  const [caFile, keyFile, config] = ["ca.pem", "key.pem", "config.json"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=pebble"];
  const extension = ["-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...extension, "-keyout", keyFile, "-out", caFile], {
    stdio: "ignore",
  });
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: caFile,
    privateKey: keyFile,
    httpPort,
    tlsPort,
    domainBlocklist: options.refused ?? [],
    ...(options.validitySeconds !== undefined && {
      profiles: { default: { description: "for tests", validityPeriod: options.validitySeconds } },
    }),
  };
  writeFileSync(config, JSON.stringify({ pebble }));
  const names = await startNames();
  const args = ["PEBBLE_VA_NOSLEEP=1", program, "-config", config, "-dnsserver", `127.0.0.1:${names.port}`];
  const child = await startTemporaryProcess({ command: "env", args }, /ACME directory available at/);
  return {
    directoryUrl: `https://127.0.0.1:${port}/dir`,
    caFile,
    httpPort,
    async root() {
      const [response] = (await once(
        get({ host: "127.0.0.1", port: managementPort, path: "/roots/0", ca: readFileSync(caFile) }),
        "response",
      )) as [IncomingMessage];
      return text(response);
    },
    pause: () => child.signal("SIGSTOP"),
    resume: () => child.signal("SIGCONT"),
    async close() {
      child.signal("SIGCONT");
      await child.end("SIGTERM");
      await names.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A DNS server over TCP that has the address 127.0.0.1 for every name. */
async function startNames(): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    let received = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 2) {
        const end = 2 + received.readUInt16BE(0);
        if (received.length < end) break;
        socket.write(responseTo(received.subarray(2, end)));
        received = received.subarray(end);
      }
    });
  });
  const [port = 0] = await freePorts(1);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", () => resolve()));
  return { port, close: () => new Promise((resolve) => server.close(() => resolve())) };
}

function responseTo(query: Buffer): Buffer {
  const { id, questions = [] } = decode(query);
  const answers = questions.flatMap(({ name, type }) =>
    type === "A" ? [{ name, type: "A" as const, ttl: 1, data: "127.0.0.1" }] : [],
  );
  return streamEncode({ type: "response", id: id ?? 0, questions, answers });
}
