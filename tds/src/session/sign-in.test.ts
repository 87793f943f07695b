import { once } from "node:events";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testImage } from "@holdfast/testing/engines/test-image.ts";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { connectTds } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PacketWriter, packetTypes } from "../protocol/packet.ts";
import { decodePreLogin, encodePreLogin, encryption } from "../protocol/pre-login.ts";

let postgresql: TestPostgresql;
let tds: TestTds;
beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
});
afterAll(async () => {
  await tds?.stop();
  await postgresql?.stop();
});

/** The first response to these bytes, empty if the server closes the connection. */
async function firstResponse(bytes: Uint8Array): Promise<Buffer> {
  const socket = connect(tds.server.port, "127.0.0.1");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    socket.end();
  });
  socket.on("error", () => {});
  socket.end(bytes);
  await once(socket, "close");
  return Buffer.concat(chunks);
}

describe("sign-in", () => {
  test.each([
    ["TLS inside of pre-login", { encrypt: true }],
    ["TLS from the first byte, in TDS 8.0", { encrypt: "strict" }],
    ["TDS 7.1", { tdsVersion: "7_1" }],
    ["TDS 7.2", { tdsVersion: "7_2" }],
    ["TDS 7.3", { tdsVersion: "7_3_B" }],
    ["small packets", { packetSize: 512 }],
    ["the database master", { database: "master" }],
  ])("a client with a password selects 1: %s", async (_, options) => {
    const client = await connectTds(tds, { options });
    const { sets } = await client.batch("SELECT 1 AS one, CURRENT_USER AS name");
    expect(sets).toEqual([[{ one: 1, name: tds.user }]]);
    await client.close();
  });

  test("names that every object inherits are not logins, databases or procedures", async () => {
    const client = await connectTds(tds);
    for (const word of inheritedNames) {
      const refused = connectTds(tds, { authentication: { userName: word } });
      await expect(refused).rejects.toThrow(`Login failed for user '${word}'.`);
      await expect(connectTds(tds, { options: { database: word } })).rejects.toThrow(word);
      expect((await client.batch(`EXEC ${word}`)).errors).toEqual([2812]);
    }
    await client.close();
  });

  test("a wrong password and an unknown login get the same error", async () => {
    const wrong = { authentication: { password: "wrong" } };
    const unknown = { authentication: { userName: "nobody" } };
    await expect(connectTds(tds, wrong)).rejects.toThrow(`Login failed for user '${tds.user}'.`);
    await expect(connectTds(tds, unknown)).rejects.toThrow("Login failed for user 'nobody'.");
  });

  test("a role that PostgreSQL admits without a password is refused", async () => {
    const trusted = connectTds(tds, { authentication: { userName: "postgres", password: "any" } });
    await expect(trusted).rejects.toThrow("Login failed for user 'postgres'.");
  });

  test("another database is refused by its name", async () => {
    await expect(connectTds(tds, { options: { database: "other" } })).rejects.toThrow('Cannot open database "other"');
  });

  test("a certificate of another authority is refused by the client", async () => {
    await expect(connectTds(tds, { options: { cryptoCredentialsDetails: {} } })).rejects.toThrow("self-signed");
  });

  test("encryption is required of each client, regardless of its offer", async () => {
    for (const offered of [encryption.off, encryption.on, encryption.notSupported, encryption.required]) {
      const preLogin = encodePreLogin({ encryption: offered, mars: true }, [16, 0, 0]);
      const response = await firstResponse(new PacketWriter().write(packetTypes.preLogin, preLogin, true));
      expect(decodePreLogin(response.subarray(8))).toEqual({ encryption: encryption.required, mars: false });
    }
  });

  test("a client that signs in without encryption gets an error that it can show", async () => {
    const response = await firstResponse(new PacketWriter().write(packetTypes.login7, Buffer.alloc(94), true));
    expect(response.toString("utf16le", 1)).toContain("only encrypted connections");
  });

  test("random bytes and truncated packets end only their own connection", async () => {
    const preLogin = encodePreLogin({ encryption: encryption.on, mars: false }, [16, 0, 0]);
    const packet = new PacketWriter().write(packetTypes.preLogin, preLogin, true);
    const tlsHello = Buffer.from([0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5]);
    const wrapped = new PacketWriter().write(packetTypes.preLogin, tlsHello, true);
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc.nat(packet.length - 1).map((length) => packet.subarray(0, length + 1)),
      fc.uint8Array({ maxLength: 100 }).map((tail) => Buffer.concat([packet, tail])),
      fc.uint8Array({ maxLength: 100 }).map((tail) => Buffer.concat([packet, wrapped, tail])),
      fc.uint8Array({ maxLength: 100 }).map((tail) => Buffer.concat([tlsHello, tail])),
    );
    await fc.assert(
      fc.asyncProperty(bytes, async (sent) => void (await firstResponse(sent))),
      { numRuns: 150 },
    );
    const client = await connectTds(tds);
    expect((await client.batch("SELECT 1 AS one")).sets).toEqual([[{ one: 1 }]]);
    await client.close();
  });

  test("a disconnected client ends its PostgreSQL session and rolls back its transaction", async () => {
    const client = await connectTds(tds);
    await client.batch("CREATE TABLE ended (a int); BEGIN TRAN; INSERT INTO ended VALUES (1)");
    client.connection.close();
    const sessions = async () => {
      const { rows } = await tds.superuser.query("SELECT FROM pg_stat_activity WHERE application_name LIKE 'tds:%'");
      return rows.length;
    };
    await expect.poll(sessions).toBe(0);
    expect((await tds.superuser.query("SELECT FROM dbo.ended")).rows).toEqual([]);
  });

  test("tsql of FreeTDS signs in with each version of the protocol", async () => {
    const image = await testImage("tsql");
    if (typeof image === "string") throw new Error(image);
    const directory = mkdtempSync(join(tmpdir(), "holdfast-freetds-"));
    chmodSync(directory, 0o755);
    const section = (version: string) =>
      `[v${version}]\nhost = 127.0.0.1\nport = ${tds.server.port}\ntds version = ${version}\nencryption = require\n`;
    const versions = ["7.1", "7.2", "7.3", "7.4"];
    writeFileSync(join(directory, "freetds.conf"), versions.map(section).join("\n"), { mode: 0o644 });
    const script = "SELECT 1 AS one, N'\u00fcber' AS text, CAST(NULL AS nvarchar(max)) AS empty\nGO\nexit\n";
    writeFileSync(join(directory, "script.sql"), script, { mode: 0o644 });
    writeFileSync(
      join(directory, "run.sh"),
      'exec tsql -S "$1" -U "$TDS_USER" -P "$TDS_PASSWORD" -D defaultdb < "$2/script.sql"\n',
      { mode: 0o644 },
    );
    for (const version of versions) {
      const output = await image.run(["sh", `${directory}/run.sh`, `v${version}`, directory], [directory], {
        FREETDSCONF: `${directory}/freetds.conf`,
        LC_ALL: "C.UTF-8",
        TDS_USER: tds.user,
        TDS_PASSWORD: tds.password,
      });
      expect(output).toContain("1\tüber\tNULL");
    }
  });
});
