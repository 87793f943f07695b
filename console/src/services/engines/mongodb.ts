import { type ConsoleEngine, withParameter } from "./console-engine.ts";

export const mongodb: ConsoleEngine = {
  snippets: ({ host, port, user, database, uri }) => [
    { title: "URI", text: withParameter(uri, "tlsCAFile=ca.pem") },
    {
      title: "mongosh",
      text: `mongosh --host ${host} --port ${port} --username ${user} --authenticationDatabase admin --tls --tlsCAFile ca.pem ${database}`,
    },
    {
      title: "Node.js",
      text: [
        'import { MongoClient } from "mongodb";',
        `const client = new MongoClient("mongodb://${host}:${port}/?tls=true&authSource=admin", {`,
        `  auth: { username: "${user}", password: process.env.PASSWORD }, tlsCAFile: "ca.pem",`,
        "});",
        `const database = client.db("${database}");`,
      ].join("\n"),
    },
  ],
};
