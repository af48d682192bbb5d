// Verifies the requests of standard input, one JSON object a line: {url, fields: [[name, value]], jwk, bare}.
// Prints a line for each: ok, or why not. A request with a member of Signature-Agent is for http-message-sig, one with a
// bare string for web-bot-auth.
import { createInterface } from 'node:readline';
import { verifySignature, webcrypto, component } from 'http-message-sig';
import { verify } from 'web-bot-auth';
import { verifierFromJWK } from 'web-bot-auth/crypto';

async function check({ url, fields, jwk, bare }) {
  const request = new Request(url, { headers: fields });
  if (bare) {
    await verify(request, await verifierFromJWK(jwk));
    return;
  }
  const key = await crypto.subtle.importKey('jwk', { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, 'Ed25519', true, ['verify']);
  await verifySignature(request, {
    policy: {
      algorithms: ['ed25519'],
      requiredComponents: ['@authority', component('signature-agent', { key: 'sig1' })],
      requiredParameters: ['created', 'expires', 'keyid', 'tag'],
      clockSkew: 0,
      validate: (s) => s.parameters.tag === 'web-bot-auth' && s.parameters.keyid === jwk.kid,
    },
    resolveVerifier: () => webcrypto.verifier(key),
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    await check(JSON.parse(line));
    console.log('ok');
  } catch (error) {
    console.log(`no: ${error.message}`);
  }
}
