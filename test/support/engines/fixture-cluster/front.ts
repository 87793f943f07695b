import { readFileSync } from "node:fs";
import { BlockList } from "node:net";
import { createInterface } from "node:readline";
import { createServer, type TLSSocket } from "node:tls";
import { ask, type Order, say, type Settings } from "./protocol.ts";
import { serve } from "./serve.ts";

/**
 * The fixture cluster's second component: ends TLS, holds to the allow-list and passes on to the member. A line of JSON each
 * way, the first one to sign in. `front.ts SETTINGS TLS MEMBER SOCKET`.
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
  const order = JSON.parse(line) as Order;
  if (order.op === "signIn") {
    await ask(member, order);
    sessions.set(session, order.username);
    return undefined;
  }
  const username = sessions.get(session) ?? "";
  if (order.op !== "get" && order.op !== "set") throw new Error("not for users");
  return ask(member, { ...order, username });
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

function answer(order: Order): unknown {
  if (order.op === "endSessions") {
    for (const [session, username] of sessions) if (username === order.username) session.destroy();
    return undefined;
  }
  if (order.op !== "reload") return undefined;
  settings = readSettings();
  allowed = allowList();
  server.setSecureContext(certificate());
  for (const session of sessions.keys()) if (!allowed.check(session.remoteAddress ?? "")) session.destroy();
  return say("info", "front reads its settings");
}

process.on("SIGTERM", () => process.exit(0));
await serve(socket, answer);
server.listen(settings.port, settings.address, () => say("info", "front listens"));
