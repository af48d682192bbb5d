// Crawls each seed given as an argument with spider, all at the same time, and prints the pages.
use spider::website::Website;

#[tokio::main]
async fn main() {
    let crawls: Vec<_> = std::env::args()
        .skip(1)
        .map(|seed| {
            tokio::spawn(async move {
                let mut website = Website::new(&seed);
                website
                    .with_respect_robots_txt(true)
                    .with_delay(0)
                    .with_user_agent(Some("peer"));
                website.crawl_raw().await;
                website.get_links().len()
            })
        })
        .collect();
    let mut pages = 0;
    for crawl in crawls {
        pages += crawl.await.unwrap();
    }
    println!("{pages}");
}
