// Segments raw RGB frames with a file of `steadyseg export --stateful`.
//
//   ffmpeg -i drive.mp4 -vf scale=480:360 -pix_fmt rgb24 -f rawvideo - | ./steadyseg_client m.onnx > labels.raw
//   ./steadyseg_client m.onnx --verify     # runs the proof of a file that was exported --with-proof
//
// labels.raw gets one byte for each pixel, its class. --bf16 lets processors with bf16 compute in it: about twice as
// fast, and about one label in 300 differs; the proof then has wider bounds.

#include "steadyseg_client.hpp"

#include <cstdio>

// The proof that a file carries; docs/deploy.md describes its entries.
class Proof {
public:
    Proof(Client& client) : client(client) {
        if (!client.has("proof"))
            throw std::runtime_error("this file carries no proof; export it with --stateful --with-proof");
        plan = client.text("proof");
        for (const char* name : {"block", "motion_block", "draws", "map_step", "probability_step"})
            sizes[name] = numbers(plan, name)[0];
        for (const double number : numbers(plan, "turns")) turns.push_back(number);
    }

    // Prints what was found beside its bounds, and returns the exit code.
    int verify(bool reduced) {
        bool holds = true;
        std::string shown;
        for (const auto& [name, value] : sizes["draws"] ? moments_apart() : values_apart()) {
            const double bound = numbers(plan, name, reduced ? "reduced_bounds" : "bounds")[0];
            holds = holds && (name == "labels_equal" ? value >= bound : value <= bound);  // NaN is within no bound
            char text[200];
            std::snprintf(text, sizeof text, ", %s %.6g (bound %g)", name.c_str(), value, bound);
            shown += text;
        }
        const std::string version = ov::get_openvino_version().buildNumber;
        std::printf("%s by OpenVINO %s: %s\n", holds ? "equal" : "NOT EQUAL", version.c_str(), shown.substr(2).c_str());
        return holds ? 0 : 1;
    }

private:
    // Each stored value, of `size` bytes, `block` times along both axes, cut to h x w.
    template <class Put>
    void enlarge(const std::string& name, size_t part, size_t size, int block, int h, int w, Put put) {
        const auto bytes = from_base64(client.text("proof_" + name));
        const size_t rows = (h + block - 1) / block, columns = (w + block - 1) / block;
        for (int y = 0; y < h; ++y)
            for (int x = 0; x < w; ++x)
                put(y * w + x, &bytes.at(((part * rows + y / block) * columns + x / block) * size), x, y);
    }

    void run(size_t turn) {
        const size_t h = client.height, w = client.width, sh = client.state_height, sw = client.state_width;
        ov::Tensor frame(ov::element::u8, {1, h, w, 3});
        enlarge("frame", turns[3 * turn], 3, sizes["block"], h, w, [&](int place, const uint8_t* from, int, int) {
            std::copy_n(from, 3, frame.data<uint8_t>() + 3 * place);
        });
        Tensors inputs = {{"frame", frame}};
        inputs["gap"] = Client::scalar(turns[3 * turn + 1]), inputs["reset"] = Client::scalar(turns[3 * turn + 2]);
        if (client.moves) {
            ov::Tensor motion(ov::element::f32, {1, sh, sw, 2}), trust(ov::element::f32, {1, sh, sw});
            float *to = motion.data<float>(), *weight = trust.data<float>();
            const int block = sizes["motion_block"];
            enlarge("motion", turn, 4, block, sh, sw, [&](int place, const uint8_t* from, int x, int y) {
                to[2 * place] = x + static_cast<int16_t>(from[0] | from[1] << 8) / 32.0f;
                to[2 * place + 1] = y + static_cast<int16_t>(from[2] | from[3] << 8) / 32.0f;
            });
            enlarge("trust", turn, 1, block, sh, sw, [&](int place, const uint8_t* from, int, int) {
                weight[place] = *from / 255.0f;
            });
            inputs["motion"] = motion, inputs["trust"] = trust;
        }
        client.run(inputs);
    }

    // The sampled values of an output.
    std::vector<double> sampled(const std::string& name) {
        const ov::Tensor tensor = client.output(name);
        const bool is_map = tensor.get_element_type() == ov::element::u8;
        std::vector<double> found;
        for (size_t at = 0; at < tensor.get_size(); at += sizes[is_map ? "map_step" : "probability_step"])
            found.push_back(is_map ? tensor.data<uint8_t>()[at] : tensor.data<float>()[at]);
        return found;
    }

    // The stored values of an output, all turns in one row.
    std::vector<double> stored(const std::string& name) {
        const auto bytes = from_base64(client.text("proof_" + name));
        if (name.rfind("probability", 0) != 0) return {bytes.begin(), bytes.end()};
        const float* values = reinterpret_cast<const float*>(bytes.data());
        return {values, values + bytes.size() / 4};
    }

    std::map<std::string, double> values_apart() {
        const size_t count = turns.size() / 3;
        std::map<std::string, double> sum, found = {{"probability_max", 0}, {"map_levels_mean", 0}};
        std::map<std::string, size_t> values;
        for (size_t turn = 0; turn < count; ++turn) {
            run(turn);
            for (const std::string name : {"label", "confidence", "entropy", "disagreement", "probability"}) {
                const auto expected = stored(name), got = sampled(name);
                for (size_t at = 0; at < got.size(); ++at) {
                    const double apart = std::abs(got[at] - expected.at(turn * got.size() + at));
                    sum[name] += name == "label" ? apart == 0 : apart;
                    if (name == "probability" && !(apart <= found["probability_max"])) found["probability_max"] = apart;
                }
                values[name] += got.size();
            }
        }
        for (const std::string name : {"confidence", "entropy", "disagreement"})
            found["map_levels_mean"] = std::max(found["map_levels_mean"], sum[name] / values[name]);
        found["labels_equal"] = sum["label"] / values["label"];
        found["probability_mean"] = sum["probability"] / values["probability"];
        return found;
    }

    // Random dropout: mean and variance of the last turn's probabilities over draws.
    std::map<std::string, double> moments_apart() {
        const auto expected = stored("probability"), variance = stored("probability_variance");
        std::vector<double> sum(expected.size()), squares(expected.size());
        const double draws = sizes["draws"];
        for (int draw = 0; draw < draws; ++draw) {
            for (size_t turn = 0; turn < turns.size() / 3; ++turn) run(turn);
            const auto got = sampled("probability");
            for (size_t at = 0; at < got.size(); ++at) sum[at] += got[at], squares[at] += got[at] * got[at];
        }
        double z2 = 0, moving = 0, ours = 0, theirs = 0;
        for (size_t at = 0; at < sum.size(); ++at) {
            const double mean = sum[at] / draws, spread = (squares[at] - sum[at] * mean) / (draws - 1);
            ours += spread, theirs += variance[at];
            if (spread + variance[at] <= 1e-8) continue;
            z2 += std::pow(mean - expected[at], 2) / ((spread + variance[at]) / draws), ++moving;
        }
        return {{"mean_z2", z2 / moving}, {"variance_difference", std::abs(ours / theirs - 1)}};
    }

    Client& client;
    std::string plan;
    std::map<std::string, int> sizes;
    std::vector<int> turns;  // frame, gap, reset; frame, gap, ...
};

int main(int count, char** words) {
    const std::vector<std::string> flags(words + std::min(count, 2), words + count);
    const auto given = [&](const char* flag) { return std::find(flags.begin(), flags.end(), flag) != flags.end(); };
    const char* usage = "usage: steadyseg_client MODEL.onnx [--verify] [--bf16] < frames > labels\n";
    if (count < 2) return std::fputs(usage, stderr), 2;
    try {
        Client client(words[1], given("--bf16"));
        if (given("--verify")) return Proof(client).verify(given("--bf16"));
        if (client.text("lag") != "0") throw std::runtime_error("its maps come late; export it without --lag");
        std::fprintf(stderr, "frames of %dx%d, RGB, 8 bits\n", client.width, client.height);
        std::vector<uint8_t> frame(3 * client.width * client.height);
        while (std::fread(frame.data(), 1, frame.size(), stdin) == frame.size()) {
            client.step(frame.data());
            const ov::Tensor label = client.output("label"), entropy = client.output("entropy");
            std::fwrite(label.data<uint8_t>(), 1, label.get_size(), stdout);
            std::vector<size_t> pixels(256);
            double unsure = 0;
            for (size_t at = 0; at < label.get_size(); ++at)
                ++pixels[label.data<uint8_t>()[at]], unsure += entropy.data<uint8_t>()[at] / 255.0;
            const size_t most = std::max_element(pixels.begin(), pixels.end()) - pixels.begin();
            std::fprintf(stderr, "%s %.0f %%, mean uncertainty %.3f\n", client.classes.at(most).c_str(),
                         100.0 * pixels[most] / label.get_size(), unsure / label.get_size());
        }
        return 0;
    } catch (const std::exception& error) {
        return std::fprintf(stderr, "steadyseg_client: %s\n", error.what()), 2;
    }
}
