// A file of `steadyseg export --stateful` and the state of one stream, on the CPU by OpenVINO: copy this header and
// steadyseg_metadata.hpp.
//
// Frames must have the network's size: OpenVINO ignores the antialiasing of the file's own resize. A file that follows
// motion needs OpenCV (WITH_OPENCV); without it use a file of `--motion off`.
#pragma once

#include "steadyseg_metadata.hpp"

#include <openvino/openvino.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#ifdef WITH_OPENCV
#include <opencv2/imgproc.hpp>
#include <opencv2/video/tracking.hpp>
#endif

using Tensors = std::map<std::string, ov::Tensor>;
const std::vector<std::string> MAPS = {"label", "confidence", "entropy", "disagreement"};
const int MAX_SIDE = 1 << 14;
const size_t MAX_STATE_VALUES = 1 << 30;

// A file and the state of one stream; everything but the path is read from the file's metadata.
class Client {
public:
    Client(const std::string& path, bool bf16) : model(core.read_model(path)) {
        if (has("lag") && text("lag") != "0") throw std::runtime_error("its maps come late; export it again");
        if (!has("steadyseg_format") || text("steadyseg_format") != "1" || text("kind") != "stream")
            throw std::runtime_error(path + ": no stream; make one with steadyseg export --stateful");
        height = whole(json("input_height"), "input_height", 1, MAX_SIDE);
        width = whole(json("input_width"), "input_width", 1, MAX_SIDE);
        const int stride = whole(json("head_stride"), "head_stride", 1, 2);
        state_height = (height + stride - 1) / stride, state_width = (width + stride - 1) / stride;
        classes = class_names(json("classes"));
        if (json("motion").kind != Json::TRUTH) refuse("motion", "expected true or false");
        moves = json("motion").number;
        std::map<std::string, ov::PartialShape> shapes;
        for (const auto& input : model->inputs()) {
            auto shape = input.get_partial_shape();
            shape[0] = 1;
            if (input.get_any_name() == "frame") shape[1] = height, shape[2] = width;
            shapes[input.get_any_name()] = shape;
        }
        model->reshape(shapes);
        check_graph();  // before anything is allocated
        const auto precision = bf16 ? ov::element::bf16 : ov::element::f32;
        request = core.compile_model(model, "CPU", ov::hint::inference_precision(precision)).create_infer_request();
        for (const auto& input : model->inputs()) {
            const std::string name = input.get_any_name();
            if (name.rfind("state_", 0) != 0) continue;
            auto& [now, next] = states[name];
            now = ov::Tensor(input.get_element_type(), input.get_shape());
            next = ov::Tensor(input.get_element_type(), input.get_shape());
            std::fill_n(static_cast<char*>(now.data()), now.get_byte_size(), 0);
        }
        probability = model->output(MAPS.size()).get_any_name();  // it comes after the four maps
    }

    bool has(const std::string& key) const { return model->has_rt_info("framework", key); }

    std::string text(const std::string& key) const {
        if (!has(key)) throw std::runtime_error("the file's metadata have no " + key);
        return model->get_rt_info<std::string>("framework", key);
    }

    Json json(const std::string& key) const { return JsonParser(text(key), key).parse(); }

    // The maps of the next frame, height x width x 3 bytes of RGB; `gap`: source frames since the last one; 0 resets
    // the states, as after a seek. `output` reads the maps.
    void step(uint8_t* frame, int gap = 1) {
        const size_t h = height, w = width;
        Tensors inputs = {{"frame", {ov::element::u8, {1, h, w, 3}, frame}}};
        inputs["gap"] = scalar(std::max(gap, 1)), inputs["reset"] = scalar(started && gap ? 0 : 1);
        if (moves) add_motion(inputs, frame, started && gap);
        started = true;
        run(inputs);
    }

    static ov::Tensor scalar(float value) {
        ov::Tensor tensor(ov::element::f32, {1, 1});
        *tensor.data<float>() = value;
        return tensor;
    }

    // One call with named inputs; the states go from call to call.
    void run(Tensors inputs) {
        for (auto& [name, pair] : states) {
            inputs[name] = pair.first;
            inputs[name.substr(0, name.size() - 2) + "out"] = pair.second;
            std::swap(pair.first, pair.second);
        }
        for (auto& [name, tensor] : inputs) request.set_tensor(name, tensor);
        request.infer();
    }

    ov::Tensor output(const std::string& name) {
        return request.get_tensor(name == "probability" ? probability : name);
    }

    int height, width, state_height, state_width;
    bool moves;
    std::vector<std::string> classes;

private:
    // Requires the inputs and outputs that the metadata describe; all sizes are fixed by now.
    void check_graph() const {
        const size_t h = height, w = width, sh = state_height, sw = state_width;
        size_t known = moves ? 5 : 3, values = 0;
        for (const auto& input : model->inputs()) {
            if (input.get_any_name().rfind("state_", 0) != 0) continue;
            const auto kind = input.get_element_type();
            if (kind != ov::element::f32 && kind != ov::element::f16) refuse("graph", "its states are floats");
            size_t size = 1;
            for (const size_t side : input.get_shape()) size *= std::min(side, MAX_STATE_VALUES), require_few(size);
            require_few(values += size), ++known;
        }
        if (model->inputs().size() != known) refuse("graph", "its inputs are not those of its metadata");
        for (const std::string& name : MAPS)
            if (model->output(name).get_element_type() != ov::element::u8 ||
                model->output(name).get_shape() != ov::Shape{1, h, w})
                refuse("graph", name + " has not the size of its metadata");
        if (model->output(MAPS.size()).get_shape() != ov::Shape{1, classes.size(), sh, sw})
            refuse("graph", "its probabilities have not the classes and size of its metadata");
    }

    static void require_few(size_t values) {
        if (values > MAX_STATE_VALUES) refuse("graph", "its states have more than 2^30 values");
    }

    // Where each pixel was in the last frame, in 1/32 pixels, and how reliable that is.
    void add_motion(Tensors& inputs, uint8_t* frame, bool goes_on) {
#ifdef WITH_OPENCV
        const size_t h = state_height, w = state_width;
        ov::Tensor motion(ov::element::f32, {1, h, w, 2}), trust(ov::element::f32, {1, h, w});
        cv::Mat grey, source(state_height, state_width, CV_32FC2, motion.data<float>());
        cv::Mat weight(state_height, state_width, CV_32F, trust.data<float>());
        cv::cvtColor(cv::Mat(height, width, CV_8UC3, frame), grey, cv::COLOR_RGB2GRAY);
        if (grey.size() != source.size()) cv::resize(grey, grey, source.size(), 0, 0, cv::INTER_AREA);
        cv::Mat flow = cv::Mat::zeros(grey.size(), CV_32FC2), before, apart;
        if (goes_on && std::min(h, w) >= 32) dis->calc(grey, last, flow);
        for (int y = 0; y < grey.rows; ++y)
            for (int x = 0; x < grey.cols; ++x) {
                const cv::Vec2f moved = (flow.at<cv::Vec2f>(y, x) + cv::Vec2f(x, y)) * 32;
                source.at<cv::Vec2f>(y, x) = {std::nearbyint(moved[0]) / 32, std::nearbyint(moved[1]) / 32};
            }
        cv::remap(goes_on ? last : grey, before, source, cv::noArray(), cv::INTER_LINEAR, cv::BORDER_REPLICATE);
        cv::absdiff(grey, before, apart);
        apart.convertTo(apart, CV_32F);
        cv::blur(apart, apart, {5, 5});
        cv::exp(apart.mul(apart) / -400, weight);
        last = grey;
        inputs["motion"] = motion, inputs["trust"] = trust;
#else
        (void)inputs, (void)frame, (void)goes_on;
        throw std::runtime_error("this file follows motion, and the program was built without OpenCV; export it with "
                                 "--motion off");
#endif
    }

#ifdef WITH_OPENCV
    cv::Ptr<cv::DISOpticalFlow> dis = cv::DISOpticalFlow::create(cv::DISOpticalFlow::PRESET_ULTRAFAST);
    cv::Mat last;
#endif
    bool started = false;
    ov::Core core;
    std::shared_ptr<ov::Model> model;
    ov::InferRequest request;
    std::map<std::string, std::pair<ov::Tensor, ov::Tensor>> states;
    std::string probability;
};
