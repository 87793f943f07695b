// The client of test images: connects to an attached service by the variables of the container alone, with the usual
// package for its engine, writes a value and prints what it reads. Arguments: engine, prefix of the variables.
import { readFileSync } from "node:fs";
import { Redis } from "iovalkey";
import { Kafka, logLevel } from "kafkajs";
import { MongoClient } from "mongodb";
import mysql from "mysql2/promise";
import { Connection, Request } from "tedious";

const [engine, prefix] = process.argv.slice(2);
const authorities = "/etc/holdfast/ca.pem";
const ca = readFileSync(authorities, "utf8");
const variable = (name) => process.env[`${prefix}_${name}`];
const [host, port, username, password] = ["HOST", "PORT", "USERNAME", "PASSWORD"].map(variable);

const clients = {
  async mysql() {
    const { hostname, port, username, password, pathname, searchParams } = new URL(process.env.DATABASE_URL);
    const connection = await mysql.createConnection({
      host: hostname,
      port: Number(port),
      user: username,
      password: decodeURIComponent(password),
      database: pathname.slice(1),
      ssl: { ca: readFileSync(searchParams.get("ssl-ca")), verifyIdentity: true },
    });
    await connection.query("CREATE TABLE IF NOT EXISTS notes (text VARCHAR(20))");
    await connection.query("INSERT INTO notes VALUES ('written')");
    const [rows] = await connection.query("SELECT text FROM notes LIMIT 1");
    await connection.end();
    return rows[0].text;
  },
  async valkey() {
    const client = new Redis(variable("URL"), { tls: { ca }, lazyConnect: true, maxRetriesPerRequest: 0 });
    await client.connect();
    await client.set("note", "written");
    const value = await client.get("note");
    await client.quit();
    return value;
  },
  async kafka() {
    const kafka = new Kafka({
      clientId: "app",
      brokers: [variable("URL")],
      logLevel: logLevel.NOTHING,
      ssl: { ca },
      sasl: { mechanism: "scram-sha-512", username, password },
    });
    const admin = kafka.admin();
    await admin.connect();
    await admin.createTopics({ waitForLeaders: true, topics: [{ topic: "notes", numPartitions: 1 }] });
    await admin.disconnect();
    const producer = kafka.producer();
    await producer.connect();
    await producer.send({ topic: "notes", messages: [{ value: "written" }] });
    await producer.disconnect();
    const consumer = kafka.consumer({ groupId: "readers" });
    await consumer.connect();
    await consumer.subscribe({ topic: "notes", fromBeginning: true });
    const value = await new Promise((resolve, reject) => {
      consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) }).catch(reject);
    });
    await consumer.disconnect();
    return value;
  },
  async tsql() {
    const connection = new Connection({
      server: host,
      authentication: { type: "default", options: { userName: username, password } },
      options: {
        port: Number(port),
        database: new URL(variable("URL")).searchParams.get("database"),
        encrypt: true,
        trustServerCertificate: false,
        cryptoCredentialsDetails: { ca },
      },
    });
    const call = (method, argument) =>
      new Promise((resolve, reject) => {
        const done = (error) => (error ? reject(error) : resolve(rows));
        const rows = [];
        if (argument === undefined) return connection[method](done);
        const request = new Request(argument, done);
        request.on("row", ([{ value }]) => rows.push(value));
        connection[method](request);
      });
    await call("connect");
    await call("execSqlBatch", "CREATE TABLE notes (text VARCHAR(20)); INSERT INTO notes VALUES ('written')");
    const [value] = await call("execSqlBatch", "SELECT text FROM notes");
    connection.close();
    return value;
  },
  async mongodb() {
    const client = new MongoClient(variable("URL"));
    const notes = client.db().collection("notes");
    await notes.insertOne({ text: "written" });
    const { text } = await notes.findOne();
    await client.close();
    return text;
  },
};

console.log(await clients[engine]());
