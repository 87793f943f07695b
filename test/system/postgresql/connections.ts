import { execFile } from "node:child_process";
import { chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { inImage } from "@holdfast/image/in-image.ts";
import { findSoftware, imagesDirectory } from "@holdfast/image/node-image.ts";
import { Client } from "pg";
import { describe, expect, it } from "vitest";
import { addressOf, privateConnection, openPostgresql, queryOnce } from "@holdfast/testing/api/clients.ts";
import { queryDns, resolveName } from "@holdfast/testing/network/dns-query.ts";
import { asRoot, programDirectory, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { login, type PostgresqlUnderTest } from "./postgresql-under-test.ts";

const run = promisify(execFile);

/** Clients, names and protocols of connections. */
export function connectionCases(fixture: PostgresqlUnderTest): void {
  describe("connections", () => {
    it("answers a query over TLS with the certificate verified against its name", async () => {
      const rows = await queryOnce<{ one: number; tls: boolean }>(
        fixture.platform,
        fixture.main.connection,
        { password: fixture.main.password },
        "SELECT 1 AS one, (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls",
      );
      expect(rows).toEqual([{ one: 1, tls: true }]);
    });

    it("fails the verification of the certificate by address", async () => {
      const attempt = openPostgresql(fixture.platform, fixture.main.connection, {
        password: fixture.main.password,
        verify: "address",
      });
      await expect(attempt).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    });

    it("accepts psql with sslmode=verify-full by name, and fails it by address", async () => {
      const { connection, password } = fixture.main;
      const directory = programDirectory("holdfast-psql");
      try {
        const address = await addressOf(fixture.platform, connection.host);
        writeForProgram(join(directory, "ca.pem"), connection.ca_certificate);
        writeForProgram(join(directory, "password"), `*:*:*:*:${password}\n`);
        const psql = (host: string) =>
          runPsql(directory, [
            `host=${host} hostaddr=${address} port=${connection.port} user=${connection.user}`,
            `dbname=${connection.database} sslmode=verify-full sslrootcert=${directory}/ca.pem passfile=${directory}/password`,
          ]);
        expect((await psql(connection.host)).stdout.trim()).toBe("1");
        await expect(psql(address)).rejects.toThrow(/certificate|verify/i);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    });

    it("rejects a connection without TLS, a wrong password and the engine's superuser", async () => {
      const address = await addressOf(fixture.platform, fixture.main.connection.host);
      const { connection, password } = fixture.main;
      await expect(openPostgresql(fixture.platform, connection, login("app_user", "wrong"))).rejects.toMatchObject({
        code: "28P01",
      });
      await expect(openPostgresql(fixture.platform, connection, login("postgres", password))).rejects.toThrow(
        "password authentication failed",
      );
      const plain = new Client({
        host: address,
        port: connection.port,
        user: connection.user,
        password,
        database: "defaultdb",
      });
      await expect(plain.connect()).rejects.toMatchObject({ code: "28000" });
    });

    it("has everything but the password in its connection object", async () => {
      const { connection, service, password } = fixture.main;
      expect(connection.host).toBe(service.hostname);
      expect(connection.uri).toContain(`${service.hostname}:${service.port}`);
      expect(JSON.stringify(connection)).not.toContain(password);
      expect(connection.ca_certificate).toContain("BEGIN CERTIFICATE");
      expect(connection.nodes).toHaveLength(1);
      expect(await resolveName(fixture.platform.admin.dns_server, connection.nodes[0]?.hostname ?? "")).toEqual(
        connection.nodes[0]?.addresses,
      );
    });

    it("is reached at its public address by name and at its private one by the private name, each verified", async () => {
      const { connection, password, service } = fixture.main;
      const [publicAddress, privateAddress] = await Promise.all([
        addressOf(fixture.platform, connection.host),
        addressOf(fixture.platform, connection.private_host),
      ]);
      expect(publicAddress).not.toBe(privateAddress);
      expect(connection.nodes[0]).toMatchObject({ addresses: [publicAddress], private_addresses: [privateAddress] });
      expect(connection.private_host).toBe(service.private_hostname);
      expect(connection.private_uri).toBe(connection.uri.replace(connection.host, connection.private_host));
      const sql = "SELECT host(inet_server_addr()) AS at";
      expect(await queryOnce(fixture.platform, connection, { password }, sql)).toEqual([{ at: publicAddress }]);
      expect(await queryOnce(fixture.platform, privateConnection(connection), { password }, sql)).toEqual([
        { at: privateAddress },
      ]);
    });
  });

  describe("its names", () => {
    it("resolve over UDP and TCP, with and without EDNS, with authority and no recursion", async () => {
      for (const transport of ["udp", "tcp"] as const) {
        for (const udpPayloadSize of [undefined, 1_232]) {
          const edns = udpPayloadSize === undefined ? {} : { udpPayloadSize };
          const question = { name: fixture.main.connection.host, transport, recursionDesired: true, ...edns };
          const response = await queryDns(fixture.platform.admin.dns_server, question);
          expect(response).toMatchObject({ rcode: "NOERROR", flag_aa: true, flag_ra: false });
          expect(response.answers).toHaveLength(1);
        }
      }
    });

    it("return NXDOMAIN for an unknown name, NODATA for another type, REFUSED outside of the zone", async () => {
      const server = fixture.platform.admin.dns_server;
      const { host } = fixture.main.connection;
      const absent = await queryDns(server, { name: `nothing.${host.split(".").slice(1).join(".")}` });
      expect(absent).toMatchObject({ rcode: "NXDOMAIN" });
      expect(absent.authorities?.[0]).toMatchObject({ type: "SOA" });
      const noData = await queryDns(server, { name: host, type: "AAAA" });
      expect(noData).toMatchObject({ rcode: "NOERROR", answers: [] });
      expect(noData.authorities?.[0]).toMatchObject({ type: "SOA" });
      expect(await queryDns(server, { name: "example.com" })).toMatchObject({ rcode: "REFUSED" });
    });
  });
}

function writeForProgram(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o600 });
  if (asRoot) chownSync(file, testUid, testUid);
}

/** psql from the node image, which has the libpq that users have. */
function runPsql(directory: string, conninfo: readonly string[]) {
  const found = findSoftware(imagesDirectory(process.env), "postgresql", "17");
  if (found === undefined) throw new Error("no node image");
  const psql = join(found.software, "bin", "psql");
  const argv = [psql, "-XAtc", "SELECT 1", conninfo.join(" ")];
  const { command, args } = inImage(found.image.root, { argv, uid: testUid, binds: [directory], asRoot });
  return run(command, args, { cwd: "/" });
}
