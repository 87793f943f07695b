import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { afterEach, expect, test } from "vitest";
import { type ChallengeServer, openChallengeServer } from "./obtain.ts";

let server: ChallengeServer | undefined;

afterEach(() => server?.close());

test("only tokens of open orders have a response, and names that every object inherits have none", async () => {
  const [port = 0] = await freePorts(1);
  server = await openChallengeServer({ host: "127.0.0.1", port });
  const respond = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return [response.status, await response.text()];
  };
  server.set("token", "token.thumbprint");
  expect(await respond("/.well-known/acme-challenge/token")).toEqual([200, "token.thumbprint"]);
  for (const name of inheritedNames) {
    expect(await respond(`/.well-known/acme-challenge/${encodeURIComponent(name)}`)).toEqual([404, ""]);
    expect(await respond(`/${encodeURIComponent(name)}`)).toEqual([404, ""]);
  }
  server.delete("token");
  expect(await respond("/.well-known/acme-challenge/token")).toEqual([404, ""]);
});
