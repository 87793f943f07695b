import type { MavenRequest } from "../artifact.ts";
import { basePackages, type Recipe } from "../recipe.ts";

/** Directory of all jars: the class path of the broker and its tools. */
const directory = "/usr/local/share/kafka";

function jar(group: string, artifact: string, version: string, sha256: string): MavenRequest {
  return { kind: "maven", group, artifact, version, sha256, path: `${directory}/${artifact}-${version}.jar` };
}

/**
 * The broker with the libraries that its classes refer to in KRaft mode, codecs of all compressions, and the exporter
 * of its metrics. Kafka's own distribution also has Connect, MirrorMaker and their web server. `openssl` creates the
 * certificates between the front and the broker.
 */
export const kafka = {
  suite: "trixie",
  packages: [...basePackages, "default-jre-headless", "haproxy", "kcat", "openssl"],
  software: [
    {
      program: "kafka",
      version: "3.9",
      path: "/usr",
      executable: "kafka-server",
      package: "org.apache.kafka:kafka_2.13",
    },
  ],
  // biome-ignore format: a line a file
  artifacts: [
    jar("net.sourceforge.argparse4j", "argparse4j", "0.7.0", "65ceb669d88f63306c680f8088bbf765bbca72d288a61a03703000076c3d3f56"),
    jar("commons-validator", "commons-validator", "1.10.1", "ed74711a78d793ca37f6075e4a1e93d107233dfd20d0bb17e32bad88d38e56aa"),
    jar("com.fasterxml.jackson.core", "jackson-annotations", "2.16.2", "d1cdd269ebaa753d1842933194e17d61958f058952d63e03dbfb3d1d78a6926e"),
    jar("com.fasterxml.jackson.core", "jackson-core", "2.16.2", "4f43e2f1430b2d2413e8e5a3d79138e57e891d6a961b18c28ac90859639d8664"),
    jar("com.fasterxml.jackson.core", "jackson-databind", "2.16.2", "53b6025d98c357068296e4b134242443a248c2c582800879f1c4ea93b54bafa6"),
    jar("net.sf.jopt-simple", "jopt-simple", "5.0.4", "df26cc58f235f477db07f753ba5a3ab243ebe5789d9f89ecf68dd62ea9a66c28"),
    jar("org.apache.kafka", "kafka-clients", "3.9.2", "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8"),
    jar("org.apache.kafka", "kafka-group-coordinator", "3.9.2", "d4d57f0955895cc38381f346f5ff7eba487afafa5ba264804af18393305b32fd"),
    jar("org.apache.kafka", "kafka-group-coordinator-api", "3.9.2", "bd903ba506c8309401a331ef1b826612d1cb95862879551031428da5cf50eab6"),
    jar("org.apache.kafka", "kafka-metadata", "3.9.2", "ffe970aee12f00df4b0162f31c719df7c412f9207c166a74cef6611be25a255e"),
    jar("org.apache.kafka", "kafka-raft", "3.9.2", "f897533828e55ac466a5b183a25dccbe5a7b97c02162dac38e25338feddfe422"),
    jar("org.apache.kafka", "kafka-server", "3.9.2", "4f8667dbd664c4b0906e05499cfdc5f558f14c098b77fa6c09656cceb62a63ef"),
    jar("org.apache.kafka", "kafka-server-common", "3.9.2", "0374b3f13c3c4b7fd446d35df1ccb0c60931ea27d4972b4de1bb1d548a87f5b2"),
    jar("org.apache.kafka", "kafka-storage", "3.9.2", "8a3d7b67dfcd34b1334d4994ed4106ba9c9b37ebcbb177ac47ff44050e8ab84b"),
    jar("org.apache.kafka", "kafka-storage-api", "3.9.2", "565ab8540b50c7f00ea62c77a6639237ed3a80550245be70dc733f157cd280d6"),
    jar("org.apache.kafka", "kafka-tools-api", "3.9.2", "501ac034b93853c3dcba4b49e32c7c795de109a96b8ab6d59a9ab19e6ef11491"),
    jar("org.apache.kafka", "kafka-transaction-coordinator", "3.9.2", "d6ca25648111dfd11f76d3d0f7f51a9458784b645f4e56ce34fbc58d9c9d0296"),
    jar("org.apache.kafka", "kafka_2.13", "3.9.2", "dddf49b18c931301fece0048a76d6b0956c36c8b1d1fc721bfed318aa6ee3e4f"),
    jar("at.yawk.lz4", "lz4-java", "1.10.1", "a58a84c4271e50df4c96ed916ccb7e48a869f8ed9cdcda1ad5d3d4c33b0214a3"),
    jar("com.yammer.metrics", "metrics-core", "2.2.0", "6b7a14a6f34c10f8683f7b5e2f39df0f07b58c7dff0e468ebbc713905c46979c"),
    jar("org.pcollections", "pcollections", "4.0.1", "1f82766d7c3221930854033bebff5073ea46b43f27326074bbe15d148c18bfb3"),
    jar("ch.qos.reload4j", "reload4j", "1.2.19", "fa07aa7adedf2a65eb09007443bb60b51c725b1b5b88e481e00c529ff2d3b5b5"),
    jar("org.scala-lang.modules", "scala-java8-compat_2.13", "1.0.2", "90d5b13656be93fb779b8d7c723efa2498a34af06273bb5204afb65f85a20c1b"),
    jar("org.scala-lang", "scala-library", "2.13.15", "8e4dbc3becf70d59c787118f6ad06fab6790136a0699cd6412bc9da3d336944e"),
    jar("com.typesafe.scala-logging", "scala-logging_2.13", "3.9.5", "87a3017d3f43e6ace7566fe4c3d615134c6914ff871c8d64bb32ca1d996d0545"),
    jar("org.slf4j", "slf4j-api", "1.7.36", "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0"),
    jar("org.slf4j", "slf4j-reload4j", "1.7.36", "ae6fdd5c9547896114d5ec7fa7503733b7d2890573d3886fb548b3119c4d3f67"),
    jar("org.xerial.snappy", "snappy-java", "1.1.10.5", "0f3f1857ed33116583f480b4df5c0218836c47bfbc9c6221c0d73f356decf37b"),
    jar("org.apache.zookeeper", "zookeeper", "3.8.4", "2d77b152039e7f85dc5438a9304febff86a2f3e55c88976a8be309af39028e97"),
    jar("com.github.luben", "zstd-jni", "1.5.6-4", "793ca8734aa15687e7e64564eab8b6ae9ee2720eae27aa663074682144b1c386"),
    jar("io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1", "7d61f737fd661610ccc14aea79764faa1ea94a340cbc8f0029b3d2edea3d80c1"),
  ],
} as const satisfies Recipe;
