// A client of @sigstore/verify: reads cases as one JSON list from standard input and prints its verdict on each, in their order.
// A case is {bundle, root, identity?: {san, issuer}, key?: PEM, artifact?: base64}; the folder with node_modules is the first argument.
// With a key, logs and times are not demanded: such bundles may come without. An identity is compared exactly, as ours is.
"use strict";
const { createRequire } = require("node:module");
const { createPublicKey } = require("node:crypto");
const path = require("node:path");

const load = createRequire(path.join(process.argv[2], "cases.js"));
const { bundleFromJSON } = load("@sigstore/bundle");
const { TrustedRoot } = load("@sigstore/protobuf-specs");
const { Verifier, toSignedEntity, toTrustMaterial } = load("@sigstore/verify");

const exactly = (text) => "^" + text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";

function verify({ bundle, root, identity, key, artifact }) {
  const publicKey = () => ({ publicKey: createPublicKey(key), validFor: () => true });
  const material = toTrustMaterial(TrustedRoot.fromJSON(root), key ? publicKey : undefined);
  const thresholds = key ? { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 } : {};
  const policy = identity && { subjectAlternativeName: exactly(identity.san), extensions: { issuer: identity.issuer } };
  const read = bundleFromJSON(bundle);
  // The JavaScript verifier takes whichever the bundle holds; who asks for a certificate is not answered by a key, nor the other way round.
  if ((read.verificationMaterial.content.$case === "publicKey") !== Boolean(key)) throw new Error("the other kind of signer");
  new Verifier(material, thresholds).verify(toSignedEntity(read, artifact && Buffer.from(artifact, "base64")), policy);
}

const chunks = [];
process.stdin.on("data", (chunk) => chunks.push(chunk));
process.stdin.on("end", () => {
  const verdicts = JSON.parse(Buffer.concat(chunks)).map((one) => {
    try {
      verify(one);
      return "";
    } catch (error) {
      return String(error.code || error.name) + ": " + error.message;
    }
  });
  process.stdout.write(JSON.stringify(verdicts));
});
