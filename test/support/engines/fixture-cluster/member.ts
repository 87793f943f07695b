import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { type Order, say, type Settings, type User } from "./protocol.ts";
import { serve } from "./serve.ts";

/**
 * A member of the fixture cluster: keeps values and users in a file and answers on a Unix socket only. Its parameter `pace`
 * is taken live, `shards` at a start. `member.ts SETTINGS STATE SOCKET`.
 */
const [settingsFile = "", stateFile = "", socket = ""] = process.argv.slice(2);
interface State {
  readonly values: Record<string, string>;
  readonly users: Record<string, User>;
}
const state = JSON.parse(readFileSync(stateFile, "utf8")) as State;
let settings = readSettings();
const shards = settings.parameters["shards"] ?? "1";

function readSettings(): Settings {
  return JSON.parse(readFileSync(settingsFile, "utf8")) as Settings;
}

function save(): void {
  writeFileSync(`${stateFile}.new`, JSON.stringify(state), { flush: true });
  renameSync(`${stateFile}.new`, stateFile);
}

function userOf(username: string): User {
  const user = state.users[username];
  if (user === undefined) throw new Error("no such user");
  return user;
}

function answer(order: Order): unknown {
  switch (order.op) {
    case "signIn": {
      const verifier = `#${createHash("sha256").update(order.password).digest("hex")}`;
      if (userOf(order.username).verifier !== verifier) throw new Error("wrong password");
      return undefined;
    }
    case "get":
      userOf(order.username);
      return state.values[order.key];
    case "set":
      if (userOf(order.username).role === "readonly") throw new Error("read only");
      state.values[order.key] = order.value;
      return save();
    case "dump":
      return state.values;
    case "users":
      return state.users;
    case "putUser":
      state.users[order.username] = { role: order.role, verifier: order.verifier };
      return save();
    case "dropUser":
      delete state.users[order.username];
      return save();
    case "info":
      save();
      return { version: settings.version, parameters: { pace: settings.parameters["pace"] ?? "1", shards } };
    case "reload":
      settings = readSettings();
      return say("info", "member reads its settings");
    default:
      throw new Error("that is the front's");
  }
}

process.on("SIGTERM", () => {
  say("info", "member leaves");
  process.exit(0);
});
say("info", "member begins");
await serve(socket, answer);
say("info", "member is ready");
