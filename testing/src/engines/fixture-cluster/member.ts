import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { type Command, writeLog, type Settings, type User } from "./protocol.ts";
import { serve } from "./serve.ts";

/**
 * A member of the fixture cluster: stores values and users in a file and listens on a Unix socket only. Its parameter
 * `interval` applies live, `shards` at a start. `member.ts SETTINGS STATE SOCKET`.
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

function execute(command: Command): unknown {
  switch (command.op) {
    case "signIn": {
      const verifier = `#${createHash("sha256").update(command.password).digest("hex")}`;
      if (userOf(command.username).verifier !== verifier) throw new Error("wrong password");
      return undefined;
    }
    case "get":
      userOf(command.username);
      return state.values[command.key];
    case "set":
      if (userOf(command.username).role === "readonly") throw new Error("read only");
      state.values[command.key] = command.value;
      return save();
    case "dump":
      return state.values;
    case "users":
      return state.users;
    case "putUser":
      state.users[command.username] = { role: command.role, verifier: command.verifier };
      return save();
    case "dropUser":
      delete state.users[command.username];
      return save();
    case "info":
      save();
      return { version: settings.version, parameters: { interval: settings.parameters["interval"] ?? "1", shards } };
    case "reload":
      settings = readSettings();
      return writeLog("info", "member reads its settings");
    default:
      throw new Error("only the front has this command");
  }
}

process.on("SIGTERM", () => {
  writeLog("info", "member leaves");
  process.exit(0);
});
writeLog("info", "member begins");
await serve(socket, execute);
writeLog("info", "member is ready");
