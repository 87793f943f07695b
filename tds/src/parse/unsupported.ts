import { SqlError } from "../run/sql-error.ts";

/**
 * Features without an implementation, with the number that SQL Server (or Azure SQL Database: 40510 to 40527) uses
 * where the feature is missing, turned off or not installed. Two features have one number only if SQL Server has one
 * for both. Drivers retry none of these numbers. tds/README.md lists them.
 */
// biome-ignore format: a table
const features = {
  "linked servers":           { number: 7202,  text: "Linked servers are not supported; remove the server part of the name." },
  "OPENROWSET":               { number: 15281, text: "OPENROWSET is not supported; load the data with a client." },
  "OPENDATASOURCE":           { number: 15281, text: "OPENDATASOURCE is not supported; load the data with a client." },
  "OPENQUERY":                { number: 7202,  text: "OPENQUERY is not supported, since there are no linked servers." },
  "OPENXML":                  { number: 40514, text: "OPENXML is not supported." },
  "CONTAINSTABLE":            { number: 7601,  text: "Full-text search is not supported." },
  "FREETEXTTABLE":            { number: 7601,  text: "Full-text search is not supported." },
  "full-text search":         { number: 7601,  text: "Full-text search is not supported." },
  "distributed transactions": { number: 8501,  text: "Distributed transactions are not supported; use a local one." },
  "CLR":                      { number: 10342, text: "CLR assemblies are not supported." },
  "change data capture":      { number: 22988, text: "Change data capture is not supported; use a replication slot on port 5432." },
  "agent jobs":               { number: 22022, text: "Agent jobs are not supported; schedule work outside of the database." },
  "Windows sign-in":          { number: 18452, text: "Sign-in with Windows or Entra is not supported; use a SQL login with a password." },
  "FOR XML":                  { number: 6819,  text: "FOR XML is not supported yet." },
  "FOR JSON":                 { number: 13602, text: "FOR JSON is not supported yet." },
  "CREATE DATABASE":          { number: 262,   text: "A service has a single database, defaultdb; no other one can be created." },
  "statement":                { number: 40510, text: "This statement is not supported in this version." },
  "function":                 { number: 195,   text: "This function is not supported in this version." },
  "data type":                { number: 40524, text: "This data type is not supported in this version." },
  "query clause":             { number: 40517, text: "This clause is not supported in this version." },
  "global temporary table":   { number: 40516, text: "Global temporary tables are not supported in this version; use a local one (#name)." },
} as const;

export type Feature = keyof typeof features;

/** Error for the use of an unsupported feature; `detail` names the part of the statement. */
export function refuse(feature: Feature, line: number, detail?: string): SqlError {
  const { number, text } = features[feature];
  return new SqlError(number, detail === undefined ? text : `${text} (${detail})`, { severity: 16, line });
}
