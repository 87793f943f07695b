import { chownSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { inImage } from "@holdfast/image/in-image.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { asRoot, programDirectory, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { startTemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";

export interface BareHaproxy {
  readonly port: number;
  readonly ca: string;
  remove(): Promise<void>;
}

/** A HAProxy with TLS before one server, at the defaults of Debian's configuration. */
export async function startBareHaproxy(imageRoot: string, server: string): Promise<BareHaproxy> {
  const directory = programDirectory("bench-haproxy");
  const [port = 0] = await freePorts(1);
  const path = (name: string) => join(directory, name);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path("key.pem")];
  const subject = ["-subj", "/CN=bench", "-addext", "subjectAltName=DNS:localhost"];
  await runProgram("openssl", ["req", "-x509", ...key, "-out", path("ca.pem"), "-days", "2", ...subject]);
  const ca = readFileSync(path("ca.pem"), "utf8");
  writeFileSync(path("server.pem"), `${ca}\n${readFileSync(path("key.pem"), "utf8")}`);
  const config = `global
  maxconn 2000
defaults
  mode http
  timeout connect 5s
  timeout client 50s
  timeout server 50s
frontend https
  bind 127.0.0.1:${port} ssl crt ${path("server.pem")} alpn h2,http/1.1
  default_backend app
backend app
  server one ${server}
`;
  writeFileSync(path("haproxy.cfg"), config);
  for (const name of ["server.pem", "haproxy.cfg"]) chownSync(path(name), testUid, testUid);
  const argv = ["/usr/sbin/haproxy", "-db", "-V", "-f", path("haproxy.cfg")];
  const child = await startTemporaryProcess(
    inImage(imageRoot, { argv, uid: testUid, binds: [directory], asRoot }),
    /\S/,
  );
  return {
    port,
    ca,
    async remove() {
      await child.end("SIGTERM");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
