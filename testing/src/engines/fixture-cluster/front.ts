import { readFileSync } from "node:fs";
import { BlockList } from "node:net";
import { createInterface } from "node:readline";
import { createServer, type TLSSocket } from "node:tls";
import { send, type Command, writeLog, type Settings } from "./protocol.ts";
import { serve } from "./serve.ts";

/**
 * Second component of the fixture cluster: terminates TLS, enforces the allow-list and forwards to the member. Commands
 * and replies are lines of JSON, the first one signs in. `front.ts SETTINGS TLS MEMBER SOCKET`.
 */
const [settingsFile = "", tls = "", member = "", socket = ""] = process.argv.slice(2);
const sessions = new Map<TLSSocket, string>();
let settings = readSettings();
let allowed = allowList();

function readSettings(): Settings {
  return JSON.parse(readFileSync(settingsFile, "utf8")) as Settings;
}

function allowList(): BlockList {
  const list = new BlockList();
  for (const cidr of settings.allowedCidrs) {
    const [network = "", length = ""] = cidr.split("/");
    list.addSubnet(network, Number(length), network.includes(":") ? "ipv6" : "ipv4");
  }
  return list;
}

function certificate() {
  return { key: readFileSync(`${tls}/server.key`), cert: readFileSync(`${tls}/server.crt`) };
}

async function perform(session: TLSSocket, line: string): Promise<unknown> {
  const command = JSON.parse(line) as Command;
  if (command.op === "signIn") {
    await send(member, command);
    sessions.set(session, command.username);
    return undefined;
  }
  const username = sessions.get(session) ?? "";
  if (command.op !== "get" && command.op !== "set") throw new Error("not for users");
  return send(member, { ...command, username });
}

const server = createServer(certificate(), (session) => {
  sessions.set(session, "");
  session.on("error", () => session.destroy());
  session.on("close", () => sessions.delete(session));
  const lines = createInterface({ input: session });
  lines.on("error", () => session.destroy());
  lines.on("line", (line) => {
    perform(session, line).then(
      (ok) => session.write(`${JSON.stringify({ ok: ok ?? null })}\n`),
      (error: Error) => session.write(`${JSON.stringify({ error: error.message })}\n`),
    );
  });
});
server.on("connection", (connection) => {
  if (!allowed.check(connection.remoteAddress ?? "", connection.remoteFamily === "IPv6" ? "ipv6" : "ipv4"))
    connection.destroy();
});
server.on("tlsClientError", () => undefined);

function execute(command: Command): unknown {
  if (command.op === "endSessions") {
    for (const [session, username] of sessions) if (username === command.username) session.destroy();
    return undefined;
  }
  if (command.op !== "reload") return undefined;
  settings = readSettings();
  allowed = allowList();
  server.setSecureContext(certificate());
  for (const session of sessions.keys()) if (!allowed.check(session.remoteAddress ?? "")) session.destroy();
  return writeLog("info", "front reads its settings");
}

process.on("SIGTERM", () => process.exit(0));
await serve(socket, execute);
server.listen(settings.port, settings.address, () => writeLog("info", "front listens"));
