package server

import (
	"context"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
)

// robotsQuery names an origin.
type robotsQuery struct {
	Origin string `query:"origin" required:"true" maxLength:"1024" doc:"scheme, host and port" example:"https://www.example.com"`
}

// robotsCheckQuery names URLs.
type robotsCheckQuery struct {
	URLs []string `query:"url,explode" required:"true" minItems:"1" maxItems:"100" maxLength:"2048" doc:"may be given more than once"`
}

// robotsChecks are verdicts.
type robotsChecks struct {
	URLs []inspect.Checked `json:"urls"`
}

func (s *Server) robotsAPI(api huma.API) {
	handle(api, operation("GET", "/robots", "robots-text", "The robots.txt of an origin as it is in force, and its earlier versions"), func(_ context.Context, q *robotsQuery) (*object[inspect.RobotsText], error) {
		u, err := weburl.Parse(q.Origin)
		if err != nil {
			return nil, errQuery{err}
		}
		return answer(s.crawl.View().RobotsText(u.Origin()))
	})
	check := operation("GET", "/robots/check", "robots-check", "What robots.txt says about URLs")
	check.Description = "By the robots.txt of each origin that is stored. Nothing is fetched: where none was read yet, nothing is allowed yet."
	handle(api, check, func(_ context.Context, q *robotsCheckQuery) (*object[robotsChecks], error) {
		urls := make([]weburl.URL, 0, len(q.URLs))
		for _, text := range q.URLs {
			u, err := weburl.Parse(text)
			if err != nil {
				return nil, errQuery{fmt.Errorf("%q: %w", text, err)}
			}
			urls = append(urls, u)
		}
		list, err := s.crawl.View().CheckRobots(urls)
		return answer(robotsChecks{list}, err)
	})
}
