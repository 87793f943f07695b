import type { Snippet, SnippetLanguage } from "./engine-client.ts";
import { double, goProgram, socketOf } from "./snippet-parts.ts";

const mongoDriver = "go.mongodb.org/mongo-driver/v2";

/** Complete programs that connect to the address and verify the name. Each prints user and database. */
// The comment of each line is the command that runs the program.
export const mongodbSnippets: Readonly<Partial<Record<SnippetLanguage, (values: Snippet) => string>>> = {
  python: (values) => `# pip install pymongo; python3 connect.py
import socket
from pathlib import Path

import pymongo

# The certificate has the name, which is resolved here. Remove this where names of services resolve.
resolve = socket.getaddrinfo
addresses = {${double(values.host)}: ${double(values.address)}}
socket.getaddrinfo = lambda host, *others, **options: resolve(addresses.get(host, host), *others, **options)

client = pymongo.MongoClient(
    host=${double(values.host)},
    port=${values.port},
    username=${double(values.user)},
    password=Path(${double(values.passwordFile)}).read_text(),
    authSource="admin",
    tls=True,
    tlsCAFile=${double(values.caFile)},
)
database = client[${double(values.database)}]
user = database.command("connectionStatus")["authInfo"]["authenticatedUsers"][0]["user"]
print(user, database.name)`,

  node: (values) => `// npm install mongodb; node connect.mjs
import { readFileSync } from "node:fs";
import { MongoClient } from "mongodb";

const client = new MongoClient(${double(`mongodb://${socketOf(values)}/`)}, {
  auth: { username: ${double(values.user)}, password: readFileSync(${double(values.passwordFile)}, "utf8") },
  authSource: "admin",
  tls: true,
  ca: readFileSync(${double(values.caFile)}),
  // The certificate has the name, not the address.
  servername: ${double(values.host)},
});
const database = client.db(${double(values.database)});
const { authInfo } = await database.command({ connectionStatus: 1 });
console.log(authInfo.authenticatedUsers[0].user, database.databaseName);
await client.close();`,

  go: (values) =>
    goProgram(values, {
      module: mongoDriver,
      packages: [`${mongoDriver}/bson`, `${mongoDriver}/mongo`, `${mongoDriver}/mongo/options`],
      standard: "context",
      connect: `	client, err := mongo.Connect(options.Client().
		SetHosts([]string{${double(socketOf(values))}}).
		SetAuth(options.Credential{Username: ${double(values.user)}, Password: string(password), AuthSource: "admin"}).
		// The certificate has the name, not the address.
		SetTLSConfig(&tls.Config{RootCAs: roots, ServerName: ${double(values.host)}}))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer client.Disconnect(ctx)
	database := client.Database(${double(values.database)})
	var status struct {
		AuthInfo struct {
			AuthenticatedUsers []struct{ User string } \`bson:"authenticatedUsers"\`
		} \`bson:"authInfo"\`
	}
	if err := database.RunCommand(ctx, bson.D{{Key: "connectionStatus", Value: 1}}).Decode(&status); err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.AuthInfo.AuthenticatedUsers[0].User, database.Name())`,
    }),
};
