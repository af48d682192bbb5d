import crawlercommons.urlfrontier.CrawlID;
import crawlercommons.urlfrontier.URLFrontierGrpc;
import crawlercommons.urlfrontier.Urlfrontier.*;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Holds a URLFrontier service against what the reference implementation's tests and its API promise.
 * Arguments: host and port. Each line of the output names a case; the exit code is 1 if one failed.
 */
public class Conformance {

    private final URLFrontierGrpc.URLFrontierBlockingStub blocking;
    private final URLFrontierGrpc.URLFrontierStub async;

    private Conformance(ManagedChannel channel) {
        blocking = URLFrontierGrpc.newBlockingStub(channel);
        async = URLFrontierGrpc.newStub(channel);
    }

    private interface Case {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        ManagedChannel channel =
                ManagedChannelBuilder.forAddress(arguments[0], Integer.parseInt(arguments[1])).usePlaintext().build();
        Conformance c = new Conformance(channel);
        int failed = 0;
        failed += c.check("never refetched", c::neverRefetched);
        failed += c.check("right order", c::rightOrder);
        failed += c.check("updates", c::updates);
        failed += c.check("queue names", c::queueNames);
        failed += c.check("crawl ids", c::crawlIDs);
        failed += c.check("blocks", c::blocks);
        failed += c.check("delays", c::delays);
        failed += c.check("limits", c::limits);
        failed += c.check("status", c::status);
        failed += c.check("lists and counts", c::listsAndCounts);
        failed += c.check("active", c::active);
        failed += c.check("ten thousand items over one stream", c::manyItems);
        channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        System.exit(failed == 0 ? 0 : 1);
    }

    /** Runs a case that begins with no crawl. */
    private int check(String name, Case body) {
        try {
            for (String id : new String[] {"BESPOKE", ""}) {
                blocking.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue(id).build());
            }
            body.run();
            System.out.println("ok " + name);
            return 0;
        } catch (Throwable e) {
            System.out.println("FAILED " + name + ": " + e);
            for (StackTraceElement at : e.getStackTrace()) {
                if (at.getClassName().equals("Conformance")) {
                    System.out.println("    line " + at.getLineNumber());
                }
            }
            return 1;
        }
    }

    private static void same(String what, Object want, Object got) {
        if (!want.equals(got)) {
            throw new AssertionError(what + ": " + got + ", want " + want);
        }
    }

    private static URLInfo info(String url) {
        return URLInfo.newBuilder().setUrl(url).build();
    }

    private static URLInfo info(String url, String key) {
        return URLInfo.newBuilder().setUrl(url).setKey(key).build();
    }

    private static URLItem discovered(URLInfo info) {
        return URLItem.newBuilder().setDiscovered(DiscoveredURLItem.newBuilder().setInfo(info)).build();
    }

    private static URLItem known(URLInfo info, long date) {
        return URLItem.newBuilder()
                .setKnown(KnownURLItem.newBuilder().setInfo(info).setRefetchableFromDate(date))
                .build();
    }

    private List<AckMessage> put(URLItem... items) throws Exception {
        List<AckMessage> acks = new ArrayList<>();
        CountDownLatch ended = new CountDownLatch(1);
        Throwable[] error = new Throwable[1];
        StreamObserver<URLItem> to =
                async.putURLs(
                        new StreamObserver<AckMessage>() {
                            @Override
                            public void onNext(AckMessage ack) {
                                acks.add(ack);
                            }

                            @Override
                            public void onError(Throwable e) {
                                error[0] = e;
                                ended.countDown();
                            }

                            @Override
                            public void onCompleted() {
                                ended.countDown();
                            }
                        });
        for (URLItem item : items) {
            to.onNext(item);
        }
        to.onCompleted();
        if (!ended.await(2, TimeUnit.MINUTES)) {
            throw new AssertionError("the stream does not end");
        }
        if (error[0] != null) {
            throw new AssertionError("the stream ends with " + error[0]);
        }
        same("acknowledgements", items.length, acks.size());
        return acks;
    }

    private List<String> get(GetParams r) {
        List<String> urls = new ArrayList<>();
        for (Iterator<URLInfo> all = blocking.getURLs(r); all.hasNext(); ) {
            urls.add(all.next().getUrl());
        }
        return urls;
    }

    private static GetParams ofQueue(String key, int urls, int delay) {
        return GetParams.newBuilder()
                .setKey(key)
                .setMaxUrlsPerQueue(urls)
                .setDelayRequestable(delay)
                .setCrawlID(CrawlID.DEFAULT)
                .build();
    }

    private Stats stats(String key, String crawl) {
        return blocking.getStats(QueueWithinCrawlParams.newBuilder().setKey(key).setCrawlID(crawl).build());
    }

    private long deleteQueue(String key) {
        return blocking.deleteQueue(QueueWithinCrawlParams.newBuilder().setKey(key).build()).getValue();
    }

    private void setDelay(String key, int seconds) {
        blocking.setDelay(QueueDelayParams.newBuilder().setKey(key).setDelayRequestable(seconds).build());
    }

    private void neverRefetched() throws Exception {
        put(known(info("http://key1.com/", "key1.com"), 0));
        same("URLs", List.of(), get(ofQueue("key1.com", 1, 2)));
    }

    private void rightOrder() throws Exception {
        long now = Instant.now().getEpochSecond();
        put(
                known(info("http://key1.com/later", "key1.com"), now),
                known(info("http://key1.com/sooner", "key1.com"), now - 10_000));
        List<String> urls = get(ofQueue("key1.com", 2, 2));
        same("URLs", List.of("http://key1.com/sooner", "http://key1.com/later"), urls);
    }

    private void updates() throws Exception {
        URLItem item = discovered(info("http://key1.com/", "key1.com"));
        List<AckMessage> acks = put(item, item);
        TreeSet<AckMessage.Status> statuses = new TreeSet<>();
        for (AckMessage ack : acks) {
            same("id", "http://key1.com/", ack.getID());
            statuses.add(ack.getStatus());
        }
        same("statuses", List.of(AckMessage.Status.OK, AckMessage.Status.SKIPPED), new ArrayList<>(statuses));
        same("queues", 1, blocking.listQueues(Pagination.getDefaultInstance()).getValuesCount());
        same("URLs", List.of("http://key1.com/"), get(ofQueue("key1.com", 1, 2)));
        same("queues", 1L, stats("key1.com", "").getNumberOfQueues());
        same("in process", 1, stats("key1.com", "").getInProcess());
        same("URLs within delay_requestable", List.of(), get(ofQueue("key1.com", 1, 2)));
        long begin = System.nanoTime();
        while (stats("key1.com", "").getInProcess() > 0) {
            if (System.nanoTime() - begin > 60e9) {
                throw new AssertionError("a URL stays in process");
            }
            Thread.sleep(50);
        }
        if (System.nanoTime() - begin < 1e9) {
            throw new AssertionError("a URL is released before delay_requestable");
        }
        same("deleted", 1L, deleteQueue("key1.com"));
        same("queues", 0L, stats("key1.com", "").getNumberOfQueues());
    }

    private void queueNames() throws Exception {
        put(discovered(info("http://gac.icann.org?language_id=9")));
        same("size", 1L, stats("gac.icann.org", "").getSize());
        same("deleted", 1L, deleteQueue("gac.icann.org"));
    }

    private void crawlIDs() throws Exception {
        same("crawls", 0, blocking.listCrawls(Local.getDefaultInstance()).getValuesCount());
        for (String id : new String[] {"BESPOKE", "", CrawlID.DEFAULT}) {
            put(discovered(URLInfo.newBuilder().setUrl("http://urlfrontier.net/").setCrawlID(id).build()));
        }
        same("crawl", CrawlID.DEFAULT, stats("", "").getCrawlID());
        for (String id : new String[] {"BESPOKE", ""}) {
            same("size of " + id, 1L, stats("", id).getSize());
            same("queues of " + id, 1L, stats("", id).getNumberOfQueues());
        }
        same("crawl", "BESPOKE", stats("", "BESPOKE").getCrawlID());
        same(
                "crawls",
                new TreeSet<>(Arrays.asList("BESPOKE", CrawlID.DEFAULT)),
                new TreeSet<>(blocking.listCrawls(Local.getDefaultInstance()).getValuesList()));
        for (String id : new String[] {"BESPOKE", ""}) {
            blocking.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue(id).build());
            same("size of " + id, 0L, stats("", id).getSize());
        }
    }

    private void blocks() throws Exception {
        put(discovered(info("http://blocked.com/")));
        BlockQueueParams.Builder block = BlockQueueParams.newBuilder().setKey("blocked.com");
        blocking.blockQueueUntil(BlockQueueParams.newBuilder().setKey("unknown.com").setTime(5).build());
        blocking.blockQueueUntil(block.setTime(Instant.now().getEpochSecond() + 3600).build());
        same("URLs of a blocked queue", List.of(), get(ofQueue("blocked.com", 1, 30)));
        same("active queues", 0, blocking.listQueues(Pagination.getDefaultInstance()).getValuesCount());
        Pagination inactive = Pagination.newBuilder().setIncludeInactive(true).build();
        same("all queues", 1, blocking.listQueues(inactive).getValuesCount());
        blocking.blockQueueUntil(block.setTime(0).build());
        same("URLs", List.of("http://blocked.com/"), get(ofQueue("blocked.com", 1, 30)));
    }

    private void delays() throws Exception {
        put(discovered(info("http://delayed.com/1")), discovered(info("http://delayed.com/2")));
        setDelay("unknown.com", 5);
        setDelay("delayed.com", 3600);
        List<String> urls = get(ofQueue("delayed.com", 1, 30));
        same("URLs", 1, urls.size());
        put(known(info(urls.get(0)), 0));
        same("URLs within the delay", List.of(), get(ofQueue("delayed.com", 1, 30)));
    }

    private void limits() throws Exception {
        CrawlLimitParams.Builder limit = CrawlLimitParams.newBuilder().setKey("limited.com");
        try {
            blocking.setCrawlLimit(limit.setLimit(1).build());
            throw new AssertionError("a limit of an unknown queue is no error");
        } catch (StatusRuntimeException e) {
            same("code", Status.Code.UNKNOWN, e.getStatus().getCode());
        }
        put(discovered(info("http://limited.com/")), known(info("http://limited.com/done"), 0));
        blocking.setCrawlLimit(limit.setLimit(1).build());
        same("URLs at the limit", List.of(), get(ofQueue("limited.com", 1, 30)));
        blocking.setCrawlLimit(limit.setLimit(2).build());
        same("URLs", 1, get(ofQueue("limited.com", 1, 30)).size());
    }

    private void status() throws Exception {
        put(
                known(info("http://status.com/done"), 0),
                known(
                        info("http://status.com/later").toBuilder()
                                .putMetadata("k", StringList.newBuilder().addValues("v").build())
                                .build(),
                        4_000_000_000L));
        URLStatusRequest.Builder r = URLStatusRequest.newBuilder().setKey("status.com");
        KnownURLItem done = blocking.getURLStatus(r.setUrl("http://status.com/done").build()).getKnown();
        same("date", 0L, done.getRefetchableFromDate());
        KnownURLItem later = blocking.getURLStatus(r.setUrl("http://status.com/later").build()).getKnown();
        same("date", 4_000_000_000L, later.getRefetchableFromDate());
        same("metadata", "v", later.getInfo().getMetadataOrThrow("k").getValues(0));
        for (Object[] x :
                new Object[][] {
                    {"http://status.com/none", Status.Code.NOT_FOUND}, {"nonsense", Status.Code.INVALID_ARGUMENT}
                }) {
            try {
                blocking.getURLStatus(r.setUrl((String) x[0]).build());
                throw new AssertionError(x[0] + " has a status");
            } catch (StatusRuntimeException e) {
                same("code of " + x[0], x[1], e.getStatus().getCode());
            }
        }
    }

    private void listsAndCounts() throws Exception {
        List<URLItem> items = new ArrayList<>();
        for (int n = 0; n < 150; n++) {
            items.add(discovered(info("http://listed.com/Page" + n)));
        }
        put(items.toArray(new URLItem[0]));
        same("URLs by default", 100, count(ListUrlParams.getDefaultInstance()));
        ListUrlParams.Builder r = ListUrlParams.newBuilder().setSize(1000);
        same("URLs", 150, count(r.build()));
        same("URLs from 140", 10, count(r.setStart(140).build()));
        same("URLs with a filter", 11, count(r.setStart(0).setFilter("page14").setIgnoreCase(true).build()));
        same("URLs with a filter", 0, count(r.setIgnoreCase(false).build()));
        CountUrlParams.Builder c = CountUrlParams.newBuilder().setKey("listed.com");
        same("count", 150L, blocking.countURLs(c.build()).getValue());
        same("count", 11L, blocking.countURLs(c.setFilter("Page14").build()).getValue());
    }

    private int count(ListUrlParams r) {
        int n = 0;
        for (Iterator<URLItem> all = blocking.listURLs(r); all.hasNext(); all.next()) {
            n++;
        }
        return n;
    }

    private void active() throws Exception {
        put(discovered(info("http://active.com/")));
        blocking.setActive(Active.newBuilder().setState(false).build());
        same("active", false, blocking.getActive(Local.getDefaultInstance()).getState());
        same("URLs", List.of(), get(GetParams.getDefaultInstance()));
        blocking.setActive(Active.newBuilder().setState(true).build());
        same("active", true, blocking.getActive(Local.getDefaultInstance()).getState());
        same("URLs", List.of("http://active.com/"), get(GetParams.getDefaultInstance()));
        blocking.setLogLevel(LogLevelParams.newBuilder().setLevel(LogLevelParams.Level.INFO).build());
        if (blocking.listNodes(Empty.getDefaultInstance()).getValuesCount() != 1) {
            throw new AssertionError("there is not one node");
        }
    }

    private void manyItems() throws Exception {
        URLItem[] items = new URLItem[10_000];
        for (int n = 0; n < items.length; n++) {
            items[n] = discovered(info("http://host" + n % 100 + ".com/" + n));
        }
        for (AckMessage ack : put(items)) {
            same("status", AckMessage.Status.OK, ack.getStatus());
        }
        same("size", 10_000L, stats("", "").getSize());
        same("queues", 100L, stats("", "").getNumberOfQueues());
    }
}
