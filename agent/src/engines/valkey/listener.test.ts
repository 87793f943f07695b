import { expect, test } from "vitest";
import { listedAuthorities } from "./listener.ts";

const output = `Filename: /var/lib/holdfast/instance/tls/ca.crt
Status: Used
 
Certificate #1:
Serial: 5A6DCA278B2F74B2AE3C98A98C957C2525B57EC8
Algorithm: EC256
SHA1 FingerPrint: C64F37C3812E59155D1441671A07E3FF7934B43E
Subject: /CN=new

Certificate #2:
SHA1 FingerPrint: 0A4F37C3812E59155D1441671A07E3FF7934B43E
Subject: /CN=old
`;

test("the listener's authorities are identified by their fingerprints", () => {
  const both = ["0A4F37C3812E59155D1441671A07E3FF7934B43E", "C64F37C3812E59155D1441671A07E3FF7934B43E"];
  expect(listedAuthorities(output)).toEqual(both);
});
