// A crawler with Crawlee over HTTP, as its documentation begins. With the argument best: what it offers for polite crawls.
import { CheerioCrawler, Configuration } from '@crawlee/cheerio';

const [settings, seed, dir] = process.argv.slice(2);
const agent = 'examplebot/1.0 (+https://example.org/bot)';
const options = settings !== 'best' ? {} : {
    respectRobotsTxtFile: { userAgent: 'examplebot' },
    sameDomainDelaySecs: 1,
    maxRequestRetries: 2,
    navigationTimeoutSecs: 10,
    preNavigationHooks: [(_, got) => { got.useHeaderGenerator = false; got.headers = { 'user-agent': agent }; }],
};
const crawler = new CheerioCrawler({
    requestHandler: async ({ enqueueLinks }) => { await enqueueLinks({ strategy: 'all' }); },
    ...options,
}, new Configuration({ storageClientOptions: { localDataDirectory: dir }, persistStorage: false }));
await crawler.run([seed]);
