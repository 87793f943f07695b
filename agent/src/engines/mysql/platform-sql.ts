import { identifier, literal } from "./session.ts";
import { platform } from "./layout.ts";

/**
 * Statements for a new data directory, one per line. The platform's account has every privilege including SYSTEM_USER,
 * so no user can change it or end its sessions. Its own session limit replaces the parameter `max_user_connections`.
 */
export function platformSql(secret: string): string {
  const platformAccount = `${literal(platform)}@'localhost'`;
  return [
    `CREATE USER ${platformAccount} IDENTIFIED WITH caching_sha2_password BY ${literal(secret)} WITH MAX_USER_CONNECTIONS 1000`,
    `GRANT ALL ON *.* TO ${platformAccount} WITH GRANT OPTION`,
    `CREATE DATABASE ${identifier(platform)} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    `CREATE TABLE ${platform}.heartbeat (id TINYINT PRIMARY KEY, at TIMESTAMP(6) NOT NULL)`,
    `INSERT INTO ${platform}.heartbeat VALUES (1, UTC_TIMESTAMP(6))`,
    `CREATE TABLE ${platform}.instance (id TINYINT PRIMARY KEY, users_created BOOLEAN NOT NULL)`,
    `INSERT INTO ${platform}.instance VALUES (1, FALSE)`,
    `CREATE TABLE ${platform}.marks (name VARCHAR(64) PRIMARY KEY, owner VARCHAR(64) NOT NULL, mark VARCHAR(255) NOT NULL)`,
    "DROP USER 'root'@'localhost'",
  ]
    .map((statement) => `${statement};\n`)
    .join("");
}
